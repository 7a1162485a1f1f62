//! Reads HotSpot's counter file (`hsperfdata`): a table of names and values that the virtual machine keeps up to
//! date.

use scruple_stats::sorting::SortedMap;

/// The counters and texts by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PerfData {
    numbers: SortedMap<String, i64>,
    texts: SortedMap<String, String>,
}

impl PerfData {
    /// Parses the file's bytes: version 2 of the format, in either byte order.
    pub fn parse(bytes: &[u8]) -> Result<PerfData, String> {
        let not = |what: &str| format!("not a counter file of a Java virtual machine: {what}");
        if bytes.get(..4) != Some(&[0xca, 0xfe, 0xc0, 0xc0]) {
            return Err(not("wrong magic number"));
        }
        let little = bytes.get(4) == Some(&1);
        if bytes.get(5) != Some(&2) {
            return Err(not("unknown version"));
        }
        let int = |at: usize| -> Option<usize> {
            let word: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
            usize::try_from(if little { i32::from_le_bytes(word) } else { i32::from_be_bytes(word) }).ok()
        };
        let long = |at: usize| -> Option<i64> {
            let word: [u8; 8] = bytes.get(at..at + 8)?.try_into().ok()?;
            Some(if little { i64::from_le_bytes(word) } else { i64::from_be_bytes(word) })
        };
        let (Some(mut at), Some(entries)) = (int(24), int(28)) else { return Err(not("it is cut short")) };
        let mut data = PerfData::default();
        for _ in 0..entries {
            let (Some(length), Some(name_at), Some(elements)) = (int(at), int(at + 4), int(at + 8)) else {
                break;
            };
            let (Some(kind), Some(data_at)) = (bytes.get(at + 12), int(at + 16)) else { break };
            if length == 0 {
                break;
            }
            let name = text(bytes, at + name_at, bytes.len());
            match kind {
                b'J' => data.numbers.extend(long(at + data_at).map(|value| (name, value))),
                b'B' => {
                    data.texts.insert(name, text(bytes, at + data_at, at + data_at + elements));
                }
                _ => {}
            }
            at += length;
        }
        Ok(data)
    }

    /// The value of a counter, if the file has it.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.numbers.get(name).map(|value| *value as f64)
    }

    /// The value of a text, if the file has it.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }

    /// The value of a counter of clock ticks, converted to nanoseconds.
    pub fn nanoseconds(&self, name: &str) -> Option<f64> {
        let frequency = self.number("sun.os.hrt.frequency").filter(|frequency| *frequency > 0.0)?;
        Some(self.number(name)? * 1e9 / frequency)
    }
}

fn text(bytes: &[u8], from: usize, to: usize) -> String {
    let bytes = bytes.get(from..to.min(bytes.len())).unwrap_or_default();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_fuzz::Corpus;

    const FILE: &[u8] = include_bytes!("../../../tests/data/runtimes/jvm/hsperfdata.bin");

    #[test]
    fn names_and_values_are_those_that_jstat_shows() {
        let data = PerfData::parse(FILE).expect("counters");
        assert_eq!(data.number("sun.gc.collector.0.invocations"), Some(3.0));
        assert_eq!(data.nanoseconds("sun.gc.collector.0.time"), Some(18_823_986.0));
        assert_eq!(data.text("sun.gc.collector.0.name"), Some("G1 young collection pauses"));
        assert_eq!(data.text("java.property.java.vm.version"), Some("17.0.15+6-Debian-1deb12u1"));
        assert_eq!(data.number("sun.rt.safepoints"), Some(4.0));
        assert_eq!(data.number("java.threads.started"), Some(7.0));
    }

    #[test]
    fn a_torn_file_gives_what_it_has() {
        let whole = PerfData::parse(FILE).expect("counters").numbers.len();
        let half = PerfData::parse(&FILE[..6000]).expect("counters").numbers.len();
        assert!(half > 0 && half < whole);
        assert!(PerfData::parse(&FILE[..20]).is_err());
        assert!(PerfData::parse(b"hello").is_err());
    }

    #[test]
    fn damaged_counter_files_are_survived() {
        Corpus::default().with("hsperfdata", FILE).is_survived_by(|bytes| drop(PerfData::parse(bytes)));
    }
}
