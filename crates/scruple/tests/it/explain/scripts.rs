//! `scruple explain` of programs in Python, Ruby and Guile: by the functions of the script, which the interpreter
//! counts. Code that a script evaluates from a text is not taken for unchanged.

use crate::explain::explain;
use crate::programs::{has_valgrind, python, skip};
use crate::repository::Repository;
use crate::support::{Place, at};
use std::path::Path;
use std::process::Command;

#[test]
fn additional_work_of_a_script_is_attributed_to_its_function() {
    let Some(python) = python().filter(|_| has_valgrind()) else { return };
    let place = Place::new();
    for (side, rounds, name, times) in [("one", 10, "folded", 2), ("other", 14, "digest", 6)] {
        let text = format!(
            "def hashed(word):\n    for _ in range({rounds}): word = (word * 31 + 7) % 16777619\n    return word\n\
             def {name}(word):\n    for _ in range(5): word = (word * 17 ^ 3) % 65536\n    return word\n\
             def more(word): return hashed(hashed(word))\n\
             def parse(word):\n    for _ in range({times}): word = {name}(word)\n    return word\n\
             for number in range(50): parse(more(number))\n\
             exec(open(__file__[:-2] + 'txt').read(), {{}})\n"
        );
        place.write(&format!("{side}.py"), text);
        // Code of globals without a name belongs to no module. Python reports the code of everything that it executes.
        let spin = format!("def spin():\n    for i in range({rounds}): pass\nfor i in range(3): spin()\n");
        place.write(&format!("{side}.txt"), &spin);
    }
    let page = explain(&place, &[&format!("{python} one.py"), &format!("{python} other.py")]).json();
    let sentences = at(&page, "/explain/sentences");
    assert!(sentences[2].as_str().is_some_and(|one| one.starts_with("It comes from parse")), "{sentences}");
    let script = at(&page, "/explain/script");
    assert_eq!(at(script, "/repeats"), true);
    more_calls_of_the_renamed(script, [100, 300]);
    // Each of 100 calls has four rounds more.
    dearer_calls_of_hashed(script, 100.0, 20.0);
    assert_eq!(code_of_spin(&page), "changed");
}

#[test]
fn the_change_in_a_method_and_a_removed_import_of_a_script_are_named() {
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
    repository.write(
        "app.py",
        "from pkg.words import Words\nimport parsing\nfor i in range(50): Words().second()\n",
    );
    repository.write("pkg/words.py", &words(10));
    repository.write("words.py", "def second(): pass\n");
    repository.write("parsing.py", "import bisect\nimport dear\n");
    repository.write("dear.py", "TABLE = [number * number for number in range(500)]\n");
    repository.commit("old");
    repository.write("pkg/words.py", &words(60));
    repository.write("words.py", "def second(): return 0\n");
    repository.write("parsing.py", "import bisect\n");
    repository.commit("new");
    let run = format!("{python} app.py");
    let words: Vec<&str> = ["--repo", "repo", "--build", "true", "HEAD~1", "HEAD", "--"]
        .into_iter()
        .chain(run.split(' '))
        .collect();
    let answer = explain(&place, &words);
    let page = at(&answer.json(), "/explain/script").clone();
    assert_eq!(at(&page, "/rows/0/hunk"), "pkg/words.py:6", "{}", answer.exchange());
    assert_eq!(at(&page, "/rows/1/function"), "<module parsing>", "{page:#}");
    assert_eq!(at(&page, "/rows/1/parts/0/callee"), "<module dear>", "{page:#}");
    assert_eq!(at(&page, "/rows/1/parts/0/kind"), "gone");
}

#[test]
fn a_comprehension_is_a_part_of_its_function_and_methods_have_the_name_of_their_class() {
    let Some(python) = python().filter(|_| has_valgrind()) else { return };
    let place = Place::new();
    for (side, what) in [("one", "each"), ("other", "each + 1")] {
        let class = |name: &str, what: &str| {
            format!("class {name}:\n    def made(self): return [{what} for each in range(200)]\n")
        };
        let [first, second] = [class("Words", "each"), class("Lines", what)];
        place.write(&format!("{side}.py"), format!("{first}{second}Words().made(); Lines().made()\n"));
    }
    // Before 3.11, code has no name with its class.
    let works = |python: &&str| Command::new(python).arg("-V").output().is_ok_and(|run| run.status.success());
    let others = ["python3.8", "python3.9", "python3.10"].into_iter().filter(works);
    for python in others.take(1).chain([python]) {
        let page = explain(&place, &[&format!("{python} one.py"), &format!("{python} other.py")]).json();
        let row = at(&page, "/explain/script/rows/0");
        assert_eq!((&row["function"], &row["code"]), (&"Lines.made".into(), &"changed".into()), "{page:#}");
    }
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
fn a_script_that_cannot_be_counted_is_named() {
    let Some(python) = python().filter(|_| has_valgrind()) else { return };
    let place = Place::new();
    place.write("app.py", "import sys\nfor number in range(int(sys.argv[1])): abs(number)\n");
    let [few, many] = ["50", "5000"].map(|number| format!("{python} -S app.py {number}"));
    let text = place.run(["explain", "--no-time", &few, &many]).unwrapped();
    assert!(text.contains("cannot be counted") && text.contains("without -E, -I and -S"), "{text}");
    assert!(text.contains("so the script or its input must differ; it shows first in"), "{text}");
    assert!(!text.contains("bytecode"), "{text}");
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
    let words = ["one", "other"].map(|folder| format!("{ruby} --disable-gems {folder}/app.rb"));
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
    more_calls_of_the_renamed(script, [600, 1800]);
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
fn more_calls_of_the_renamed(page: &serde_json::Value, calls: [u32; 2]) {
    assert_eq!(at(page, "/rows/0/function"), "parse", "{page:#}");
    assert_eq!(at(page, "/rows/0/parts/0/kind"), "calls", "{page:#}");
    assert_eq!(at(page, "/rows/0/parts/0/calls"), &serde_json::json!(calls));
    let rows = at(page, "/rows").to_string();
    assert!(!rows.contains("\"function\":\"folded\"") && !rows.contains("\"function\":\"digest\""), "{rows}");
}

/// Checks that `hashed` executes more after a change of its own: at least `least`, and a whole number, `times` times.
fn dearer_calls_of_hashed(page: &serde_json::Value, times: f64, least: f64) {
    let dearer = at(page, "/rows/1");
    let row = ["/function", "/code", "/parts/0/kind"].map(|path| at(dearer, path));
    assert_eq!(row, ["hashed", "changed", "own"], "{page:#}");
    let each = at(dearer, "/difference").as_f64().expect("a number") / times;
    assert!(each >= least && (each - each.round()).abs() < 0.001, "{each}");
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
    more_calls_of_the_renamed(script, [600, 1800]);
    // Each of 600 calls has four rounds more.
    dearer_calls_of_hashed(script, 2400.0, 1.0);
    assert_eq!(code_of_spin(&answer), "?");
    let remarks = at(&answer, "/explain/remarks").to_string();
    assert!(remarks.contains("several threads, of which only the main one is counted"), "{remarks}");
}

/// The column about the code of the function `spin`, where both sides evaluate a text of their own. The rows if there
/// is none.
pub fn code_of_spin(page: &serde_json::Value) -> serde_json::Value {
    let rows = at(page, "/explain/script/rows").as_array().expect("rows").clone();
    let spin = rows.iter().find(|row| row["function"].as_str().is_some_and(|name| name.contains("spin")));
    spin.map_or(serde_json::Value::Array(rows.clone()), |row| row["code"].clone())
}
