//! `scruple explain` of programs in Python, JavaScript, Ruby and Guile: by the functions of the script, which the
//! interpreter counts. Code that a script evaluates from a text is not taken for unchanged.

use crate::explain::explain;
use crate::programs::{has_valgrind, python, skip};
use crate::repository::Repository;
use crate::support::{Place, at};
use std::path::Path;
use std::process::Command;

/// A script that calls `function` this many times for each word, with this many rounds in it.
fn script(place: &Place, name: &str, function: &str, rounds: u32, times: u32) {
    let text = format!(
        "def {function}(word):\n    for _ in range({rounds}): word = (word * 31 + 7) % 16777619\n    return word\n\
         def parse(word):\n    for _ in range({times}): word = {function}(word)\n    return word\n\
         for number in range(50): parse(number)\n"
    );
    place.write(name, &text);
}

#[test]
fn additional_work_of_a_script_is_attributed_to_its_function() {
    let Some(python) = python().filter(|_| has_valgrind()) else { return };
    let place = Place::new();
    script(&place, "same.py", "hashed", 10, 2);
    script(&place, "dear.py", "hashed", 11, 2);
    script(&place, "more.py", "hashed", 10, 6);
    script(&place, "name.py", "digest", 10, 2);
    // Code of globals without a name belongs to no module. Python gives the code of whatever it executes.
    for (name, rounds) in [("same", 10), ("dear", 14), ("more", 10), ("name", 10)] {
        let spin = format!("def spin():\n    for i in range({rounds}): pass\nfor i in range(3): spin()\n");
        place.write(&format!("{name}.txt"), &spin);
        let text = place.read(&format!("{name}.py"));
        let evaluates = "exec(open(__file__[:-2] + 'txt').read(), {})\n";
        place.write(&format!("{name}.py"), text + evaluates);
    }
    let whole =
        |other: &str| explain(&place, &[&format!("{python} same.py"), &format!("{python} {other}")]).json();
    let with = |other: &str| at(&whole(other), "/explain/script").clone();
    let first = |page: &serde_json::Value| {
        let text = |path: &str| at(page, path).as_str().unwrap_or_default().to_owned();
        (text("/rows/0/function"), text("/rows/0/code"), text("/rows/0/parts/0/kind"))
    };
    let of = |words: [&str; 3]| (words[0].to_owned(), words[1].to_owned(), words[2].to_owned());
    let page = whole("dear.py");
    let sentences = at(&page, "/explain/sentences");
    assert!(sentences[2].as_str().is_some_and(|one| one.starts_with("It comes from hashed")), "{sentences}");
    let dearer = at(&page, "/explain/script").clone();
    assert_eq!(first(&dearer), of(["hashed", "changed", "own"]), "{dearer:#}");
    assert_eq!(code_of_spin(&page), "changed");
    let each = at(&dearer, "/rows/0/difference").as_f64().expect("a number") / 100.0;
    assert!(each >= 5.0 && (each - each.round()).abs() < 0.001, "a round more in each of 100 calls: {each}");
    let more = with("more.py");
    assert_eq!(first(&more), of(["parse", "changed", "calls"]), "{more:#}");
    assert_eq!(at(&more, "/rows/0/parts/0/calls"), &serde_json::json!([100, 300]));
    let renamed = with("name.py");
    assert_eq!(at(&renamed, "/difference"), 0.0, "{renamed:#}");
    assert_eq!(at(&renamed, "/repeats"), true);
}

#[test]
fn the_change_in_a_method_of_a_script_is_named() {
    let Some(python) = python().filter(|_| has_valgrind()) else { return };
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let words = |rounds: u32| {
        format!(
            "class Words:\n    def first(self):\n        return [each for each in range(2)]\n\n    \
               def second(self):\n        for each in range({rounds}): pass\n        return self.first()\n"
        )
    };
    std::fs::create_dir(place.file("repo/pkg")).expect("a folder");
    repository.write("app.py", "from pkg.words import Words\nfor i in range(50): Words().second()\n");
    repository.write("pkg/words.py", &words(10));
    repository.write("words.py", "def second(): pass\n");
    repository.commit("old");
    repository.write("pkg/words.py", &words(40));
    repository.write("words.py", "def second(): return 0\n");
    repository.commit("new");
    let run = format!("{python} app.py");
    let words: Vec<&str> = ["--repo", "repo", "--build", "true", "HEAD~1", "HEAD", "--"]
        .into_iter()
        .chain(run.split(' '))
        .collect();
    let answer = explain(&place, &words);
    let page = answer.json();
    assert_eq!(at(&page, "/explain/script/rows/0/hunk"), "pkg/words.py:6", "{}", answer.exchange());
}

#[test]
fn a_script_that_executes_more_but_calls_less_in_c_is_reported() {
    let Some(python) = python().filter(|_| has_valgrind()) else { return };
    let place = Place::new();
    // B has a loop more, and sorts a shorter list: the loop is in Python, the sort in C.
    place.write("a.py", "def work():\n    return sorted(range(30000, 0, -1), key=abs)[0]\nwork()\n");
    place.write(
        "b.py",
        "def work():\n    for i in range(2000): pass\n    return sorted(range(300, 0, -1), key=abs)[0]\nwork()\n",
    );
    let page = explain(&place, &[&format!("{python} a.py"), &format!("{python} b.py")]).json();
    let remarks = at(&page, "/explain/remarks").to_string();
    assert!(remarks.contains("fewer instructions although its script has more"), "{page:#}");
}

#[test]
fn the_script_is_the_reason_why_an_interpreter_allocates_more() {
    let Some(python) = python().filter(|_| has_valgrind()) else { return };
    let place = Place::new();
    place.write("a.py", "kept = [bytearray(2000) for i in range(100)]\n");
    place.write("b.py", "kept = [bytearray(2000) for i in range(300)]\n");
    let answer = place.run(["explain", "--no-time", &format!("{python} a.py"), &format!("{python} b.py")]);
    let text = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("so the script or its input must differ"), "{}", answer.exchange());
    assert!(!text.contains("the input or the state must differ"), "{}", answer.exchange());
}

#[test]
fn a_removed_import_is_attributed_to_the_importing_module() {
    let Some(python) = python().filter(|_| has_valgrind()) else { return };
    let place = Place::new();
    for (folder, imports) in [("a", "import bisect\nimport dear\n"), ("b", "import bisect\n")] {
        std::fs::create_dir(place.file(folder)).expect("a folder");
        place.write(&format!("{folder}/parser.py"), imports);
    }
    place.write("a/dear.py", "TABLE = [number * number for number in range(500)]\n");
    let words = ["a", "b"]
        .map(|folder| format!("{python} -c 'import sys; sys.path.insert(0, \"{folder}\"); import parser'"));
    let page = at(&explain(&place, &[&words[0], &words[1]]).json(), "/explain/script").clone();
    assert_eq!(at(&page, "/rows/0/function"), "<module parser>", "{page:#}");
    assert_eq!(at(&page, "/rows/0/parts/0/callee"), "<module dear>", "{page:#}");
    assert_eq!(at(&page, "/rows/0/parts/0/kind"), "gone");
}

#[test]
fn a_script_that_cannot_be_counted_is_named() {
    let Some(python) = python().filter(|_| has_valgrind()) else { return };
    let place = Place::new();
    script(&place, "app.py", "hashed", 10, 2);
    let words = format!("{python} -S app.py");
    let answer = explain(&place, &[&words, &words]);
    let page = answer.json();
    assert!(page.pointer("/explain/script").is_none(), "{page:#}");
    let remarks = at(&page, "/explain/remarks").to_string();
    assert!(remarks.contains("cannot be counted") && remarks.contains("without -E, -I and -S"), "{remarks}");
}

/// Node itself: a shim of a version manager would run a shell as well.
pub fn node() -> Option<String> {
    let found = Command::new("node").args(["-p", "process.execPath"]).output();
    if found.is_err() {
        skip("Node is not installed");
    }
    Some(String::from_utf8_lossy(&found.ok()?.stdout).trim().to_owned())
}

#[test]
fn additional_work_in_javascript_is_attributed_to_its_function() {
    let Some(node) = node().filter(|_| has_valgrind()) else { return };
    let place = Place::new();
    for (folder, rounds) in [("one", 10), ("other", 15)] {
        std::fs::create_dir(place.file(folder)).expect("a folder");
        let body = "word = (word * 31 + 7) % 16777619";
        let text =
            format!("exports.hashed = function (word) {{ for (let i = 0; i < {rounds}; i++) {body} }}\n");
        place.write(&format!("{folder}/hash.js"), &text);
        // Node is slow where it is counted, so that one program has both a module and code from a text.
        let spin =
            format!("globalThis.spin = function spin() {{ for (let i = 0; i < {rounds}; i++) i + 1 }}\n");
        place.write(&format!("{folder}/spin.txt"), &spin);
        let text = "const { hashed } = require('./hash.js')\nfor (let i = 0; i < 1000; i++) hashed(i);\n\
            (0, eval)(require('fs').readFileSync(__dirname + '/spin.txt', 'utf8'))\n\
            for (let i = 0; i < 300; i++) spin()\n";
        place.write(&format!("{folder}/app.js"), text);
    }
    let words = ["one", "other"].map(|folder| format!("{node} {folder}/app.js"));
    let page = explain(&place, &["--runs", "2", &words[0], &words[1]]).json();
    let script = at(&page, "/explain/script");
    assert_eq!(at(script, "/counts"), "executed tokens of JavaScript");
    assert_eq!(at(script, "/rows/0/function"), "exports.hashed", "{script:#}");
    assert_eq!(at(script, "/rows/0/file"), "module hash.js");
    assert_eq!([at(script, "/rows/0/code"), at(script, "/rows/0/parts/0/kind")], ["changed", "own"]);
    assert_eq!(at(script, "/rows/0/calls"), &serde_json::json!([1000, 1000]));
    assert_eq!(code_of_spin(&page), "?");
}

#[test]
fn additional_work_in_ruby_is_attributed_to_its_method() {
    let ruby = "/usr/bin/ruby";
    if !Path::new(ruby).exists() {
        return skip("Ruby is not installed");
    }
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let app = |folder: &str, rounds: u32, name: &str, times: u32| {
        std::fs::create_dir(place.file(folder)).expect("a folder");
        let words = format!(
            "class Words\n  def hashed(word)\n    {rounds}.times do\n      word = word * 31 + 7\n      word &= 65535\n    end\n\
             \x20   word\n  end\n  def {name}(word)\n    5.times {{ word = (word * 17) ^ 3 }}\n    word & 65535\n  end\nend\n"
        );
        place.write(&format!("{folder}/words.rb"), &words);
        let spin = format!("def spin\n word = 0\n {rounds}.times do |i|\n word += i\n end\n word\nend\n");
        place.write(&format!("{folder}/spin.txt"), &spin);
        let text = format!(
            "require_relative 'words'\ndef hash(one, other) = 1\ndef inspect = raise\n\
             def more(words, word)\n  2.times {{ word = words.hashed(word) }}\n  word\nend\n\
             def parse(words, word)\n  {times}.times {{ word = words.{name}(word) }}\n  word\nend\n\
             words = Words.new\n300.times {{ |word| parse(words, more(words, word)) }}\n\
             eval File.read(__dir__ + '/spin.txt')\n30.times {{ spin }}\n\
             Thread.new {{ Thread.current.freeze; Fiber.new {{ spin }}.resume }}.join\n\
             raise unless Thread.current.keys.empty?\nRactor.new {{ 1 }}.take\n"
        );
        place.write(&format!("{folder}/app.rb"), &text);
    };
    app("one", 10, "folded", 2);
    app("other", 14, "digest", 6);
    let words = ["one", "other"].map(|folder| format!("{ruby} {folder}/app.rb"));
    let answer = explain(&place, &["--runs", "2", "--export", "page.html", &words[0], &words[1]]).json();
    // The page has a flame graph of both tables.
    let page = std::fs::read_to_string(place.file("page.html")).expect("a page");
    for title in ["instructions by calling context", "executed lines and calls of Ruby by calling context"] {
        assert!(page.contains(&format!("Differences of {title}")), "{title}");
    }
    assert!(page.contains("block in hashed (+14,400)"), "the block of the dearer method");
    assert!(answer.to_string().contains("has several Ractors"), "{answer}");
    let script = at(&answer, "/explain/script");
    assert_eq!(at(script, "/counts"), "executed lines and calls of Ruby");
    more_calls_of_the_renamed(script);
    let dearer = at(script, "/rows/1");
    assert_eq!(at(dearer, "/function"), "Words#hashed", "{script:#}");
    assert_eq!(at(dearer, "/file"), "module words.rb");
    assert_eq!(at(dearer, "/parts/0/calls"), &serde_json::json!([6000, 8400]));
    // Each round is a block’s call, two lines, and three built-in operators.
    let difference = at(dearer, "/difference").as_f64().expect("a number");
    assert!((difference - 2400.0 * 6.0).abs() < 0.01, "{difference}");
    assert_eq!(code_of_spin(&answer), "?");
}

/// Checks that `parse` calls `digest` three times as often as the other side calls a function that is the same by its
/// code.
fn more_calls_of_the_renamed(page: &serde_json::Value) {
    assert_eq!(at(page, "/rows/0/function"), "parse", "{page:#}");
    assert_eq!(at(page, "/rows/0/parts/0/kind"), "calls", "{page:#}");
    assert_eq!(at(page, "/rows/0/parts/0/calls"), &serde_json::json!([600, 1800]));
}

#[test]
fn additional_work_in_guile_is_attributed_to_its_procedure() {
    let guile = "/usr/bin/guile";
    if !Path::new(guile).exists() {
        return skip("Guile is not installed");
    }
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let app = |folder: &str, rounds: u32, name: &str, times: u32, end: &str| {
        std::fs::create_dir(place.file(folder)).expect("a folder");
        place.write(
            &format!("{folder}/spin.txt"),
            format!("(define (spin i) (if (< i {rounds}) (spin (1+ i)) i))\n"),
        );
        // The assignments keep Guile from inlining; a jump out of two procedures must not confuse callers. The compiler
        // would take most of the test's time if it were counted as well.
        let text = format!(
            "(use-modules (ice-9 control) (ice-9 threads) (ice-9 binary-ports) (system vm loader))\n\
             (define (hashed word)\n  (let next ((i 0) (h word))\n    (if (< i {rounds}) (next (1+ i) (logand (+ (* h 31) 7) 65535)) h)))\n\
             (define ({name} word)\n  (let next ((i 0) (h word))\n    (if (< i 5) (next (1+ i) (logxor (* h 17) 3)) (logand h 65535))))\n\
             (define (more word) (let next ((i 0)) (if (< i 2) (begin (hashed word) (next (1+ i))) word)))\n\
             (define (parse word) (let next ((i 0)) (if (< i {times}) (begin ({name} word) (next (1+ i))) word)))\n\
             (define (out word) (call/ec (lambda (leave) (more (parse word)) (leave word))))\n\
             (set! hashed hashed) (set! {name} {name}) (set! more more) (set! parse parse) (set! out out)\n\
             (do ((i 0 (1+ i))) ((= i 300)) (out i))\n\
             (define code (call-with-input-file \"{folder}/spin\" get-bytevector-all #:binary #t))\n\
             ((load-thunk-from-memory code))\n\
             (do ((i 0 (1+ i))) ((= i 30)) (spin 0))\n\
             (exit {end})\n"
        );
        place.write(&format!("{folder}/app.scm"), &text);
    };
    app("one", 10, "folded", 2, "0");
    app("other", 14, "digest", 6, "(= (join-thread (call-with-new-thread (lambda () 7))) 7)");
    // The text comes from a string, so that the code names no file.
    let compiles = "(use-modules (system base compile) (ice-9 binary-ports) (ice-9 textual-ports))\n\
        (define (code text) (compile (call-with-input-string text read) #:to 'bytecode #:optimization-level 0))\n\
        (define (compile-text folder)\n  \
          (define text (call-with-input-file (string-append folder \"/spin.txt\") get-string-all))\n  \
          (call-with-output-file (string-append folder \"/spin\")\n    \
            (lambda (port) (put-bytevector port (code text)))))\n\
        (compile-text \"one\") (compile-text \"other\")\n";
    place.write("compiles.scm", compiles);
    let mut command = Command::new(guile);
    command.args(["--no-auto-compile", "compiles.scm"]).current_dir(place.path());
    assert!(command.status().is_ok_and(|status| status.success()), "guile");
    let words = ["one", "other"].map(|folder| format!("{guile} --no-auto-compile {folder}/app.scm"));
    let answer = explain(&place, &["--runs", "2", &words[0], &words[1]]).json();
    let script = at(&answer, "/explain/script");
    assert_eq!(at(script, "/counts"), "virtual machine instructions of Guile");
    more_calls_of_the_renamed(script);
    let dearer = at(script, "/rows/1");
    let row = ["/function", "/code", "/parts/0/kind"].map(|path| at(dearer, path));
    assert_eq!(row, ["hashed", "changed", "own"], "{script:#}");
    let each = at(dearer, "/difference").as_f64().expect("a number") / 2400.0;
    assert!(
        each >= 1.0 && (each - each.round()).abs() < 0.001,
        "four rounds more in each of 600 calls: {each}"
    );
    assert_eq!(code_of_spin(&answer), "?");
    let remarks = at(&answer, "/explain/remarks").to_string();
    assert!(remarks.contains("several threads, of which only the main one is counted"), "{remarks}");
}

/// The column about the code of the function `spin`, where both sides evaluate a text of their own. The rows if there
/// is none.
fn code_of_spin(page: &serde_json::Value) -> serde_json::Value {
    let rows = at(page, "/explain/script/rows").as_array().expect("rows").clone();
    let spin = rows.iter().find(|row| row["function"].as_str().is_some_and(|name| name.contains("spin")));
    spin.map_or(serde_json::Value::Array(rows.clone()), |row| row["code"].clone())
}
