//! `scruple explain` on programs of Go whose work is done by goroutines.

use crate::explain::{adds_up, explain, first};
use crate::programs::{has_valgrind, skip};
use crate::support::{Answer, Place, at};
use std::process::Command;

/// Source of a program in which `produce` sends this many numbers to three goroutines that run `consume`, and `cold`
/// starts this many goroutines: compilers of C give parts of a function `main` the name `main.cold`.
fn source(sent: u32, started: u32) -> String {
    format!(
        "package main\n\nimport (\"fmt\"; \"sync\")\n\n\
         //go:noinline\nfunc score(n int) int {{ for i := 0; i < 200; i++ {{ n = n*31 + i }}; return n }}\n\n\
         //go:noinline\nfunc produce(jobs chan<- int) {{ for i := 0; i < {sent}; i++ {{ jobs <- i }}; close(jobs) }}\n\n\
         //go:noinline\nfunc consume(jobs <-chan int) int {{ all := 0; for job := range jobs {{ all += score(job) }}; return all }}\n\n\
         //go:noinline\nfunc cold(done chan int) {{ for i := 0; i < {started}; i++ {{ \
         go func() {{ done <- score(i) + score(i+1) }}() }}; for i := 0; i < {started}; i++ {{ <-done }} }}\n\n\
         func main() {{\n\tjobs, done := make(chan int, 4), make(chan int)\n\tvar all sync.WaitGroup\n\
         \tfor i := 0; i < 3; i++ {{ all.Add(1); go func() {{ consume(jobs); all.Done() }}() }}\n\
         \tgo produce(jobs)\n\tall.Wait()\n\tcold(done)\n\tfmt.Println(\"ready\")\n}}\n"
    )
}

fn is_built(place: &Place, name: &str, text: &str) -> bool {
    place.write(&format!("{name}.go"), text);
    let words = ["build", "-o", name, &format!("{name}.go")];
    let built = Command::new("go").args(words).current_dir(place.path()).output();
    let is_built = built.is_ok_and(|output| output.status.success());
    if !is_built {
        skip("go is not installed");
    }
    is_built
}

fn compared(place: &Place, old: &str, new: &str) -> Option<Answer> {
    if !has_valgrind() || !is_built(place, "old", old) || !is_built(place, "new", new) {
        return None;
    }
    let answer = explain(place, &["./old", "./new"]);
    adds_up(&answer);
    Some(answer)
}

#[test]
fn the_function_that_starts_more_goroutines_is_named() {
    let place = Place::new();
    let Some(answer) = compared(&place, &source(400, 300), &source(400, 450)) else { return };
    let (function, kind, delta) = first(&answer);
    assert_eq!((function.as_str(), kind.as_str()), ("main.cold", "calls"), "{}", answer.exchange());
    let part = at(&answer.json(), "/explain/counts/0/rows/0/parts/0").clone();
    assert_eq!(part["callee"], "main.cold.func", "{}", answer.exchange());
    assert_eq!(part["calls"], serde_json::json!([300, 450]), "{}", answer.exchange());
    let whole = at(&answer.json(), "/explain/counts/0/difference").as_f64().expect("a number");
    assert!(delta > 0.9 * whole, "{}", answer.exchange());
}

#[test]
fn what_goroutines_cost_is_not_attributed_to_the_scheduler() {
    let place = Place::new();
    let Some(answer) = compared(&place, &source(2000, 10), &source(3000, 10)) else { return };
    assert_eq!(first(&answer).0, "main.produce", "{}", answer.exchange());
    let page = answer.json();
    let whole = at(&page, "/explain/counts/0/difference").as_f64().expect("a number");
    for row in at(&page, "/explain/counts/0/rows").as_array().expect("rows") {
        let is_own = row["function"].as_str().is_some_and(|name| name.starts_with("main."));
        let share = row["difference"].as_f64().expect("a number") / whole;
        assert!(is_own || share.abs() < 0.05, "{}", answer.exchange());
    }
}

#[test]
fn a_setting_of_the_collector_is_reported_as_collections_of_one_program() {
    let place = Place::new();
    let text = "package main\n\nvar kept [][]byte\n\n\
                func main() {\n\tfor i := 0; i < 20000; i++ { kept = append(kept, make([]byte, 100)) }\n}\n";
    if !has_valgrind() || !is_built(&place, "app", text) {
        return;
    }
    let answer = place.run(["explain", "--no-time", "--runs", "2", "./app", "env GOGC=10 ./app"]);
    let said = answer.unwrapped();
    let cause = "No function’s code explains it, so the input or the state must differ";
    assert!(said.contains(cause) && said.contains("Garbage collection ("), "{}", answer.exchange());
    // The bytes that are counted are those of `env`.
    assert!(!said.contains("of the difference in bytes allocated"), "{}", answer.exchange());
}
