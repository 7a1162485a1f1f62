//! Recursive programs in languages whose interpreters count: the difference of two is attributed to the function in
//! which it originates.

use crate::harness::skip;
use scruple_code::{Binaries, Side};
use scruple_core::explain::{CodeComparison, Count, Explanation, Matched, explain};
use scruple_measure::calltree::{Language, ScriptCounts, ScriptSession};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// What is replaced in the programs, by which numbers in the first and the second one, and the function that must be
/// named.
const PLANTED: [(&str, [u32; 2], &str); 5] = [
    ("AGAIN", [0, 1], "binary"),
    ("LEAF", [3, 9], "leaf"),
    ("DIRECT", [0, 1], "compare"),
    ("PIVOT", [2, 4], "sort"),
    ("DEPTH", [60, 90], "ask"),
];

/// Runs the program in this file of the folder, whose interpreter counts.
fn run(folder: &Path, language: Language, [interpreter, program]: [&str; 2]) -> Option<ScriptCounts> {
    let session = ScriptSession::start(language, folder).unwrap();
    let mut command = Command::new(interpreter);
    let Ok(done) = command.arg(folder.join(program)).envs(session.env(|_| None)).output() else {
        skip(&format!("{interpreter} is not installed"));
        return None;
    };
    assert!(done.status.success(), "{command:?}: {done:?}");
    assert!(!String::from_utf8_lossy(&done.stderr).contains("warning"), "{command:?}: {done:?}");
    let counts = session.read().unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(counts.lost, 0);
    Some(counts)
}

/// Runs one of the programs, with a planted change if there is one.
fn counted(
    folder: &Path,
    language: Language,
    words: [&str; 2],
    planted: Option<(&str, u32)>,
) -> Option<Side> {
    let program = words[1];
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/calltree/programs").join(program);
    let mut text = std::fs::read_to_string(source).unwrap();
    for (key, [old, _], _) in PLANTED {
        let number = planted.filter(|(changed, _)| *changed == key).map_or(old, |(_, number)| number);
        text = text.replace(&format!("@{key}@"), &number.to_string());
    }
    std::fs::write(folder.join(program), text).unwrap();
    Some(run(folder, language, words)?.side)
}

fn explained(first: &Side, second: &Side) -> Explanation {
    let binaries = Binaries::default();
    let same = |a: &[usize], b: &[usize]| binaries.same((first, a), (second, b));
    let likeness = |a: usize, b: usize| binaries.likeness((first, a), (second, b));
    let code = CodeComparison { same: &same, likeness: &likeness, are_two: &|_, _| false };
    let matched = Matched::of(&first.tree, &second.tree, &code);
    // The code of a script makes all of its data, so that the data are not another cause.
    assert!([first, second].iter().all(|side| binaries.data(side, 0).is_some()));
    explain(&first.tree, &second.tree, &matched, &code, &[Count::Instructions]).remove(0)
}

/// Checks which function the difference of each planted pair is attributed to, in both directions, and which part of
/// it.
fn check(language: Language, interpreter: &str, program: &str, part: std::ops::RangeInclusive<f64>) {
    let folder = tempfile::tempdir().unwrap();
    // Without a change the program is the same for each pair, so it is counted once.
    let Some(old) = counted(folder.path(), language, [interpreter, program], None) else { return };
    for (key, [_, new], function) in PLANTED {
        let changed = Some((key, new));
        let Some(new) = counted(folder.path(), language, [interpreter, program], changed) else { return };
        for (first, second) in [(&old, &new), (&new, &old)] {
            let found = explained(first, second);
            let whole = found.totals.1 - found.totals.0;
            let parts: f64 = found.rows.iter().map(|row| row.delta).sum();
            assert!((parts - whole).abs() < 1.0, "{key}: the parts add up to {parts} of {whole}");
            let rows: Vec<(&str, f64)> =
                found.rows.iter().take(4).map(|row| (row.name.as_str(), row.delta / whole)).collect();
            let is_right = rows.first().is_some_and(|(name, share)| {
                name.rsplit(['#', '.']).next() == Some(function) && part.contains(share)
            });
            assert!(is_right, "{program}, {key}: {rows:?} of {whole}");
        }
    }
}

#[test]
fn recursive_functions_of_python_are_explained() {
    check(Language::Python, "python3", "recursion.py", 0.98..=1.02);
}

#[test]
fn recursive_methods_of_ruby_are_explained() {
    check(Language::Ruby, "ruby", "recursion.rb", 0.98..=1.02);
}

#[test]
fn recursive_procedures_of_guile_are_explained() {
    check(Language::Guile, "guile", "recursion.scm", 0.98..=1.02);
}

#[test]
fn recursive_functions_of_javascript_are_explained() {
    // Each call of a function counts with the mean cost, whichever function makes it, so that parts are too large.
    check(Language::JavaScript, "node", "recursion.js", 0.5..=f64::INFINITY);
}

#[test]
fn a_changed_function_that_moved_to_another_module_is_the_origin() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let escape = |loops: u32| format!("def escape(s):\n    for i in range({loops}): pass\n    return s\n");
    let unit = "def unit(s): return s\n";
    write(
        "app.py",
        "from util import escape, unit\ndef use(s): return unit(escape(s))\nfor i in range(50): use('a')\n",
    );
    let count = || Some(run(folder.path(), Language::Python, ["python3", "app.py"])?.side);
    write("util.py", &format!("{unit}{}", escape(3)));
    let Some(old) = count() else { return };
    write("util.py", &format!("from moved import escape\n{unit}"));
    write("moved.py", &escape(90));
    let new = count().unwrap();
    let found = explained(&old, &new);
    let first = found.rows.first().map(|row| (row.name.as_str(), row.same_code, row.calls));
    assert_eq!(first, Some(("escape", Some(false), (50, 50))), "{:?}", found.rows);
}

/// The calls of the function `leaf` by each caller.
fn callers_of_leaf(language: Language, words: [&str; 2], text: &str) -> Option<Vec<(String, u64)>> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(words[1]), text).unwrap();
    let tree = run(folder.path(), language, words)?.side.tree;
    let name = |context: usize| tree.functions[tree.contexts[context].function].name.clone();
    let mut callers = BTreeMap::new();
    for (number, context) in tree.contexts.iter().enumerate() {
        if let Some(parent) = context.parent.filter(|_| name(number) == "leaf") {
            *callers.entry(name(parent)).or_default() += context.calls;
        }
    }
    Some(callers.into_iter().collect())
}

#[test]
fn threads_generators_and_exceptions_of_python_have_their_own_callers() {
    let text = "import os, sys, threading\ndef leaf(): pass\n\
        def body():\n    for i in range(50): leaf()\n\
        def each():\n    for i in range(3):\n        leaf()\n        yield i\n\
        def fails():\n    leaf()\n    raise ValueError\n\
        threads = [threading.Thread(target=body) for i in range(4)]\n\
        for thread in threads: thread.start()\nfor thread in threads: thread.join()\n\
        other = each()\nfor i in each(): next(other)\n\
        try: fails()\nexcept ValueError: leaf()\n\
        child = os.fork()\nif child == 0:\n    fails if leaf() else body()\n    sys.exit(0)\n\
        os.waitpid(child, 0)\n";
    let Some(callers) = callers_of_leaf(Language::Python, ["python3", "app.py"], text) else { return };
    let of = |name: &str, calls| (name.to_owned(), calls);
    assert_eq!(callers, [of("<module>", 2), of("body", 250), of("each", 6), of("fails", 1)]);
}

#[test]
fn functions_that_count_a_program_in_python_are_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let text = "import os, sys, threading\nthread = threading.Thread(target=print)\nthread.start()\nthread.join()\n\
        if os.fork() == 0: sys.exit(0)\nos.wait()\n";
    std::fs::write(folder.path().join("app.py"), text).unwrap();
    let Some(counts) = run(folder.path(), Language::Python, ["python3", "app.py"]) else { return };
    let functions = counts.side.tree.functions.iter();
    let own: Vec<&str> =
        functions.filter(|one| one.module.contains("sitecustomize")).map(|one| one.name.as_str()).collect();
    assert!(own.is_empty(), "{own:?}");
}

#[test]
fn threads_and_fibers_of_ruby_have_their_own_callers() {
    let text = "def leaf = 1\ndef body = 50.times { leaf }\ndef inner\n  leaf\n  Fiber.yield\n  leaf\nend\n\
        4.times.map { Thread.new { body } }.each(&:join)\n\
        fibers = 3.times.map { Fiber.new { inner } }\n2.times { fibers.each(&:resume) }\n\
        100.times { Fiber.new { inner }.resume }\nGC.start\n100.times { Fiber.new { inner }.resume }\n\
        catch(:out) { leaf; throw :out }\nProcess.wait(fork { body })\n";
    let Some(callers) = callers_of_leaf(Language::Ruby, ["ruby", "app.rb"], text) else { return };
    let of = |name: &str, calls| (name.to_owned(), calls);
    assert_eq!(callers, [of("block in <main>", 1), of("block in body", 250), of("inner", 206)]);
}

/// The digests of what a program in Guile has, by file and name. The program calls a procedure this many times, which
/// reads a constant of a module.
fn digests_of_guile(times: u32, constant: u32) -> Option<BTreeMap<String, u64>> {
    let folder = tempfile::tempdir().unwrap();
    let module = format!(
        "(define-module (conf) #:export (step))\n(define limit {constant})\n(define (step x) (+ x limit))\n\
         (set! step step)\n(set! limit limit)\n"
    );
    std::fs::write(folder.path().join("conf.scm"), module).unwrap();
    let text = format!(
        "(add-to-load-path (dirname (current-filename)))\n(use-modules (conf))\n\
         (define (total n) (map (lambda (x) (step x)) (iota n)))\n(set! total total)\n(total {times})\n"
    );
    std::fs::write(folder.path().join("app.scm"), text).unwrap();
    let side = run(folder.path(), Language::Guile, ["guile", "app.scm"])?.side;
    let digests = side.digests.unwrap();
    let names = side.tree.functions.iter().map(|one| format!("{} of {}", one.name, one.module));
    Some(names.zip(digests).collect())
}

#[test]
fn changed_constants_and_expressions_outside_procedures_of_guile_are_known() {
    let changed = |one: &BTreeMap<String, u64>, other: &BTreeMap<String, u64>| -> Vec<String> {
        assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
        let differing = one.iter().filter(|(name, digest)| other[*name] != **digest);
        let of_files = differing.filter(|(name, _)| !name.ends_with("no module"));
        of_files.map(|(name, _)| name.clone()).collect()
    };
    let Some(base) = digests_of_guile(3, 20) else { return };
    let [constant, expression] =
        [(3, 30), (5, 20)].map(|(times, limit)| digests_of_guile(times, limit).unwrap());
    assert_eq!(changed(&base, &constant), ["(whole file) of module conf.scm"]);
    assert_eq!(changed(&base, &expression), ["(top level) of program", "(whole file) of program"]);
    for name in ["step of module conf.scm", "total.(anonymous) of program"] {
        assert!(base.contains_key(name), "{name}: {base:?}");
    }
}

#[test]
fn a_trace_function_that_was_removed_for_a_while_leaves_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let text = "import sys\nold = sys.gettrace()\nsys.settrace(None)\nsys.settrace(old)\n(lambda: 0)()\n\
        if hasattr(sys, 'monitoring'): sys.settrace(lambda *words: None)\n";
    std::fs::write(folder.path().join("app.py"), text).unwrap();
    let Some(counts) = run(folder.path(), Language::Python, ["python3", "app.py"]) else { return };
    // From 3.12 on, the trace function is the program's own, and does not disturb the counting.
    let by_trace = Command::new("python3")
        .args(["-c", "import sys; sys.exit(hasattr(sys, 'monitoring'))"])
        .status()
        .is_ok_and(|status| status.success());
    assert_eq!((counts.processes, counts.partial), (1, usize::from(by_trace)));
}
