use super::*;

#[test]
fn keys_are_unique_words_joined_by_dots() {
    for (i, metric) in METRICS.iter().enumerate() {
        let word = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        };
        assert!(metric.key.split('.').all(word), "{}", metric.key);
        assert!(METRICS[i + 1..].iter().all(|other| other.key != metric.key), "{}", metric.key);
    }
    assert!(DEFAULT_METRICS.iter().all(|key| metric(key).is_some()));
}

#[test]
fn a_family_names_its_members_only() {
    let bytes = metric("malloc.bytes").expect("declared");
    assert!(bytes.matches("malloc") && bytes.matches("malloc.*") && bytes.matches("malloc.bytes"));
    assert!(!bytes.matches("mall") && !bytes.matches("alloc.bytes"));
}

#[test]
fn a_typing_mistake_finds_its_neighbour() {
    assert!(suggestion("time.cpuu", &[]).contains("‘time.cpu’"));
    assert!(suggestion("maloc.bytes", &[]).contains("‘malloc.bytes’"));
}
