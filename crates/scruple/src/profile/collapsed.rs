//! Writes collapsed stacks: a line for each calling context with its functions, separated by semicolons, and its count.
//! With two sides, each line has two counts, as those of difffolded.pl and inferno-diff-folded have.

use super::stacks::Stacks;
use std::collections::HashMap;
use std::fmt::Write as _;

pub(super) fn text(sides: &[Stacks<'_>]) -> String {
    let mut stacks: Vec<(String, Vec<u64>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for (which, profile) in sides.iter().enumerate() {
        let Some(column) = profile.columns.get(profile.main) else { continue };
        for (place, count) in column.own.iter().enumerate().filter(|(_, count)| **count > 0) {
            let path = profile.path(place);
            // A semicolon in a name would be read as a separator.
            let names: Vec<String> =
                path.iter().map(|frame| profile.frames[*frame].name.replace(';', ",")).collect();
            let stack = names.join(";");
            let at = *known.entry(stack).or_insert_with_key(|stack| {
                stacks.push((stack.clone(), vec![0; sides.len()]));
                stacks.len() - 1
            });
            stacks[at].1[which] += count;
        }
    }
    let mut out = String::new();
    for (stack, counts) in stacks {
        let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
        let _ = writeln!(out, "{stack} {}", counts.join(" "));
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::profile::CallProfile;
    use crate::profile::stacks::of_calls;
    use crate::profile::tests::small;
    use scruple_core::explain::Count;

    fn text(sides: &[CallProfile], count: Count) -> String {
        super::text(&of_calls(sides, count))
    }

    #[test]
    fn each_context_has_a_line() {
        assert_eq!(
            text(&[small()], Count::Instructions),
            "the program;main 100\nthe program;main;work, now 1000\nthe program;main;work, now;malloc 60\n"
        );
        assert_eq!(text(&[small()], Count::Bytes), "the program;main;work, now 48\n");
    }

    #[test]
    fn two_sides_have_two_columns() {
        let mut other = small();
        other.frames[1].name = "start".to_owned();
        other.nodes.truncate(2);
        assert_eq!(
            text(&[small(), other], Count::Instructions),
            "the program;main 100 0\nthe program;main;work, now 1000 0\nthe program;main;work, now;malloc 60 0\n\
             the program;start 0 100\n"
        );
    }
}
