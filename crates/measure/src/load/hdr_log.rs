//! Writes distributions over time as an interval log of HdrHistogram, version 2, which its processors and plotters
//! read.

use super::latencies::Latencies;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use std::io;
use std::time::{Duration, UNIX_EPOCH};

/// Writes a log of the parts of a load. Each part is given by its start in nanoseconds since 1970, its length in
/// nanoseconds, and its latencies. Values in the log are nanoseconds; the maxima beside them are in milliseconds, as
/// the format requires.
///
/// # Errors
/// Fails if a distribution cannot be encoded.
pub fn hdr_log(parts: impl IntoIterator<Item = (u64, u64, Latencies)>) -> io::Result<String> {
    let mut parts = parts.into_iter().peekable();
    let base = parts.peek().map_or(0, |(began, ..)| *began);
    let start = UNIX_EPOCH + Duration::from_nanos(base);
    let (mut text, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("Responses from when they were due, in nanoseconds. Written by scruple.")
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(1e6)
        .begin_log_with(&mut text, &mut serializer)?;
    for (began, length, latencies) in parts {
        let offset = Duration::from_nanos(began.saturating_sub(base));
        log.write_histogram(&latencies.histogram(), offset, Duration::from_nanos(length), None)
            .map_err(|error| io::Error::other(error.to_string()))?;
    }
    String::from_utf8(text).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    #[test]
    fn a_log_is_read_back_with_its_times_and_counts() {
        let part = |values: &[u64]| Latencies::of(values.iter().map(|value| (*value, 1)));
        let second = 1_000_000_000;
        let first = 1_700_000_000 * second;
        let parts =
            [(first, second, part(&[1_000, 2_000_000])), (first + 2 * second, second, part(&[5_000_000]))];
        let text = hdr_log(parts).expect("written");
        assert!(text.contains("#[BaseTime: 1700000000.000"), "{text}");
        let mut read = Vec::new();
        for entry in IntervalLogIterator::new(text.as_bytes()) {
            if let LogEntry::Interval(interval) = entry.expect("well-formed") {
                let bytes = base64(interval.encoded_histogram());
                let histogram: Histogram<u64> =
                    Deserializer::new().deserialize(&mut bytes.as_slice()).expect("a histogram");
                read.push((interval.start_timestamp().as_secs(), histogram.len(), histogram.max()));
            }
        }
        assert_eq!((read[0].0, read[0].1, read[1].0, read[1].1), (0, 2, 2, 1));
        assert!(read[0].2.abs_diff(2_000_000) < 2_000 && read[1].2.abs_diff(5_000_000) < 5_000);
    }

    /// A decoder of RFC 4648's alphabet that is independent of the writer.
    fn base64(text: &str) -> Vec<u8> {
        let value = |byte: u8| match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        let (mut bytes, mut bits, mut held) = (Vec::new(), 0_u32, 0);
        for byte in text.bytes().filter(|byte| *byte != b'=') {
            bits = bits << 6 | u32::from(value(byte));
            held += 6;
            if held >= 8 {
                held -= 8;
                bytes.push((bits >> held) as u8);
                bits &= (1 << held) - 1;
            }
        }
        bytes
    }
}
