//! Writes the JSON of the Firefox profiler: a process for each side, with one thread for each count, whose samples are
//! contexts with their counts as weights. The times of the samples only give their order.

use super::stacks::Stacks;
use fxprof_processed_profile::{
    CpuDelta, Frame, FrameFlags, FrameInfo, Profile, ReferenceTimestamp, SamplingInterval, StackHandle,
    Timestamp, WeightType,
};
use std::time::UNIX_EPOCH;

pub(super) fn text(sides: &[Stacks<'_>]) -> String {
    let reference = ReferenceTimestamp::from_system_time(UNIX_EPOCH);
    let titles: Vec<&str> = sides.iter().map(|side| &*side.title).collect();
    let mut out = Profile::new(&titles.join("; "), reference, SamplingInterval::from_millis(1));
    out.set_symbolicated(true);
    let start = Timestamp::from_nanos_since_reference(0);
    let processes: Vec<_> =
        (1..).zip(&titles).map(|(number, title)| out.add_process(title, number, start)).collect();
    let other = out.add_category("Other", fxprof_processed_profile::CategoryColor::Blue);
    let columns = sides.first().map_or(0, |side| side.columns.len());
    let each = (0..columns).flat_map(|column| (0..sides.len()).map(move |side| (column, side)));
    for (number, (column, side)) in (1..).zip(each) {
        let (profile, column) = (&sides[side], &sides[side].columns[column]);
        let thread = out.add_thread(processes[side], number, start, false);
        out.set_thread_name(thread, &column.word);
        let kind = if column.unit == "bytes" { WeightType::Bytes } else { WeightType::Samples };
        out.set_thread_samples_weight_type(thread, kind);
        let frames: Vec<_> = profile
            .frames
            .iter()
            .map(|frame| {
                let label = out.intern_string(&frame.name);
                let info = FrameInfo {
                    frame: Frame::Label(label),
                    category_pair: other.into(),
                    flags: FrameFlags::empty(),
                };
                out.intern_frame(thread, info)
            })
            .collect();
        let mut stacks: Vec<StackHandle> = Vec::with_capacity(profile.nodes.len());
        let mut time = 0;
        for ((parent, frame), count) in profile.nodes.iter().zip(&column.own) {
            let parent = parent.map(|parent| stacks[parent]);
            let stack = out.intern_stack(thread, parent, frames[*frame]);
            stacks.push(stack);
            let mut left = *count;
            // A weight has 32 bits, so that a large count needs several samples.
            while left > 0 {
                let weight = i32::try_from(left).unwrap_or(i32::MAX);
                time += 1_000_000;
                let at = Timestamp::from_nanos_since_reference(time);
                out.add_sample(thread, at, Some(stack), CpuDelta::ZERO, weight);
                left -= u64::from(weight.unsigned_abs());
            }
        }
    }
    // Serialization cannot fail, because these types have text keys and no failing serializers.
    serde_json::to_string(&out).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use crate::profile::stacks::of_calls;
    use scruple_core::explain::Count;
    use serde_json::Value;

    #[test]
    fn every_context_is_a_sample_of_its_weight_and_large_weights_are_several() {
        let mut profile = crate::profile::tests::small();
        profile.nodes[2].own.instructions = 5_000_000_000;
        let page: Value =
            serde_json::from_str(&super::text(&of_calls(&[profile], Count::Instructions))).expect("JSON");
        let threads = page["threads"].as_array().expect("threads");
        let mut names: Vec<&str> = threads.iter().filter_map(|thread| thread["name"].as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["allocations", "bytes", "instructions"]);
        let counted = threads.iter().find(|thread| thread["name"] == "instructions").expect("the thread");
        let weights = counted["samples"]["weight"].as_array().expect("weights");
        assert_eq!(weights.iter().filter_map(Value::as_u64).sum::<u64>(), 5_000_000_160);
        assert_eq!(weights.len(), 5);
    }
}
