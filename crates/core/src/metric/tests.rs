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

#[test]
fn of_a_metric_of_a_program_less_is_better_unless_it_is_a_rate_or_the_balance_of_a_queue() {
    let better = |key: &str, unit: &str| {
        Metric::custom(key, Unit::from(unit.to_owned()), Quality::Noisy, Pass::Counting).better
    };
    assert_eq!(
        (better("cache.misses", "count"), better("cache.reads", "reads/s")),
        (Better::Lower, Better::Higher)
    );
    assert_eq!(better("queue.balance.producers", "ratio"), Better::Higher);
    assert_eq!(
        (better("queue.parallelism", "ratio"), better("queue.lost", "count")),
        (Better::Higher, Better::Lower)
    );
}
