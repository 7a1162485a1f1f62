//! Instructions, counted where somebody asks for them.

use crate::support::Place;

fn has_valgrind() -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join("valgrind").is_file())
}

#[test]
fn instructions_are_counted_where_they_are_named_and_nowhere_else() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let words = ["run", "--no-store", "-m", "2", "-M", "2", "--budget", "1s", "--metrics"];
    let asked = place.run(words.iter().chain(&["instructions", "seq 1000", "seq 1000", "seq 9000"]));
    let rows: Vec<&str> = asked.stdout.lines().collect();
    let head = rows
        .iter()
        .position(|row| row.trim() == "instructions")
        .unwrap_or_else(|| panic!("{}", asked.stdout));
    assert!(rows[head + 1].contains("seq 1000") && rows[head + 2].contains("±0"), "{}", asked.stdout);
    assert!(rows[head + 3].contains("seq 9000") && rows[head + 3].contains("more"), "{}", asked.stdout);
    let all = place.run(words.iter().chain(&["all", "seq 10"]));
    assert!(!all.stdout.lines().any(|row| row.trim() == "instructions"), "{}", all.stdout);
}

#[test]
fn a_limit_on_instructions_has_them_counted() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let words = ["run", "--no-store", "-m", "2", "-M", "2", "--budget", "1s", "seq 1000", "--limit"];
    let kept = place.run(words.iter().chain(&["instructions<100000000"]));
    assert_eq!(kept.code, 0, "{}{}", kept.stdout, kept.stderr);
    let exceeded = place.run(words.iter().chain(&["instructions<1000"]));
    assert_eq!(exceeded.code, 1, "{}{}", exceeded.stdout, exceeded.stderr);
}

#[test]
fn doctor_says_by_what_instructions_are_counted() {
    let place = Place::new();
    let with = place.run(["doctor", "--quick"]).stdout;
    let line = with.lines().find(|line| line.trim_start().starts_with("instructions")).expect("a line");
    if has_valgrind() {
        assert!(line.contains("the call tree") || line.contains("the processor"), "{line}");
    }
    let mut bare = place.command(["doctor", "--quick"]);
    let without = place.finish(bare.env("PATH", place.path())).stdout;
    let line = without.lines().find(|line| line.trim_start().starts_with("instructions")).expect("a line");
    assert!(line.contains("valgrind is not installed") || line.contains("the processor"), "{line}");
}
