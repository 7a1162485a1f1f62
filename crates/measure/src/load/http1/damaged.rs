//! Tests that damaged answers give an error or what was read, however the bytes are divided.

use super::*;
use scruple_fuzz::Corpus;

#[test]
fn damaged_answers_are_survived_in_portions_of_any_size() {
    Corpus::named("http1").is_survived_by(|bytes| {
        for step in [1, 7, bytes.len().max(1)] {
            let mut reader = ResponseReader::default();
            for part in bytes.chunks(step) {
                match reader.feed(part, Expect::default()) {
                    Ok((used, None)) => assert_eq!(used, part.len()),
                    Ok((used, Some(_))) => assert!(used <= part.len()),
                    Err(_) => break,
                }
            }
            reader.end();
        }
    });
}
