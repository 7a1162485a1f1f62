//! `scruple explain` of programs in Python, JavaScript, Ruby and Guile: by the functions of the script, which the
//! interpreter counts.

use crate::explain::explain;
use crate::programs::{has_valgrind, skip};
use crate::repository::Repository;
use crate::support::{Place, at};
use std::path::Path;

/// A script that calls `function` this many times for each word, with this many rounds in it.
fn script(place: &Place, name: &str, function: &str, rounds: u32, times: u32) {
    let text = format!(
        "def {function}(word):\n    for _ in range({rounds}): word = (word * 31 + 7) % 16777619\n    return word\n\
         def parse(word):\n    for _ in range({times}): word = {function}(word)\n    return word\n\
         for number in range(50): parse(number)\n"
    );
    place.write(name, &text);
}

/// The interpreter itself: a shim of a version manager would run a shell as well.
pub fn python() -> Option<&'static str> {
    ["/usr/bin/python3", "/usr/local/bin/python3"].into_iter().find(|path| Path::new(path).exists())
}

#[test]
fn additional_work_of_a_script_is_attributed_to_its_function() {
    let Some(python) = python().filter(|_| has_valgrind()) else { return };
    let place = Place::new();
    script(&place, "same.py", "hashed", 10, 2);
    script(&place, "dear.py", "hashed", 11, 2);
    script(&place, "more.py", "hashed", 10, 6);
    script(&place, "name.py", "digest", 10, 2);
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
    let each = at(&dearer, "/difference").as_f64().expect("a number") / 100.0;
    assert!(each >= 5.0 && each.fract() == 0.0, "a round more in each of 100 calls: {each}");
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
    place.write("a.py", "def work():\n    return sorted(range(300000, 0, -1), key=abs)[0]\nwork()\n");
    place.write(
        "b.py",
        "def work():\n    for i in range(2000): pass\n    return sorted(range(3000, 0, -1), key=abs)[0]\nwork()\n",
    );
    let page = explain(&place, &[&format!("{python} a.py"), &format!("{python} b.py")]).json();
    let remarks = at(&page, "/explain/remarks").to_string();
    assert!(remarks.contains("fewer instructions although its script has more"), "{page:#}");
}

#[test]
fn a_removed_import_is_attributed_to_the_importing_module() {
    let Some(python) = python().filter(|_| has_valgrind()) else { return };
    let place = Place::new();
    for (folder, imports) in [("a", "import json\nimport dear\n"), ("b", "import json\n")] {
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
    let found = std::process::Command::new("node").args(["-p", "process.execPath"]).output();
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
    let app = |folder: &str, name: &str, rounds: u32, times: u32| {
        std::fs::create_dir(place.file(folder)).expect("a folder");
        let hash = format!(
            "class Words\n  def {name}(word)\n    {rounds}.times do\n      word = word * 31 + 7\n      word &= 65535\n    end\n\
             \x20   word\n  end\nend\n"
        );
        place.write(&format!("{folder}/words.rb"), &hash);
        let text = format!(
            "require_relative 'words'\ndef hash(one, other) = 1\ndef inspect = raise\ndef parse(words, word)\n  {times}.times {{ word = words.{name}(word) }}\n  word\nend\n\
             words = Words.new\n300.times {{ |word| parse(words, word) }}\n"
        );
        place.write(&format!("{folder}/app.rb"), &text);
    };
    app("same", "hashed", 10, 2);
    app("dear", "hashed", 11, 2);
    app("more", "digest", 10, 6);
    let with = |other: &str| {
        let words = ["same", other].map(|folder| format!("{ruby} {folder}/app.rb"));
        let answer = explain(&place, &["--runs", "2", "--export", "page.html", &words[0], &words[1]]);
        at(&answer.json(), "/explain/script").clone()
    };
    let dearer = with("dear");
    // The page has a flame graph of both tables.
    let page = std::fs::read_to_string(place.file("page.html")).expect("a page");
    for title in ["instructions by calling context", "executed lines and calls of Ruby by calling context"] {
        assert!(page.contains(&format!("Differences of {title}")), "{title}");
    }
    assert!(page.contains("block in hashed (+3,600)"), "the block of the dearer method");
    assert_eq!(at(&dearer, "/counts"), "executed lines and calls of Ruby");
    assert_eq!(at(&dearer, "/rows/0/function"), "Words#hashed", "{dearer:#}");
    assert_eq!(at(&dearer, "/rows/0/file"), "module words.rb");
    assert_eq!(at(&dearer, "/rows/0/parts/0/calls"), &serde_json::json!([6000, 6600]));
    // Each round is a block’s call, two lines, and three built-in operators.
    assert_eq!(at(&dearer, "/difference"), 600.0 * 6.0);
    more_calls_of_the_renamed(&with("more"));
}

/// Checks that `parse` calls `digest` three times as often as the other side calls `hashed`, which is the same function
/// by its code.
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
    let app = |folder: &str, name: &str, rounds: u32, times: u32| {
        std::fs::create_dir(place.file(folder)).expect("a folder");
        // The assignments keep Guile from inlining; a jump out of two procedures must not confuse callers.
        let text = format!(
            "(use-modules (ice-9 control))\n\
             (define ({name} word)\n  (let next ((i 0) (h word))\n    (if (< i {rounds}) (next (1+ i) (logand (+ (* h 31) 7) 65535)) h)))\n\
             (define (parse word) (let next ((i 0)) (if (< i {times}) (begin ({name} word) (next (1+ i))) word)))\n\
             (define (out word) (call/ec (lambda (leave) (parse word) (leave word))))\n\
             (set! {name} {name}) (set! parse parse) (set! out out)\n\
             (do ((i 0 (1+ i))) ((= i 300)) (out i))\n(exit 0)\n"
        );
        place.write(&format!("{folder}/app.scm"), &text);
    };
    app("same", "hashed", 10, 2);
    app("dear", "hashed", 11, 2);
    app("more", "digest", 10, 6);
    let with = |other: &str| {
        let words = ["same", other].map(|folder| format!("{guile} --no-auto-compile {folder}/app.scm"));
        let answer = explain(&place, &["--runs", "2", &words[0], &words[1]]);
        at(&answer.json(), "/explain/script").clone()
    };
    let dearer = with("dear");
    assert_eq!(at(&dearer, "/counts"), "virtual machine instructions of Guile");
    let rows = ["/rows/0/function", "/rows/0/code", "/rows/0/parts/0/kind"].map(|path| at(&dearer, path));
    assert_eq!(rows, ["hashed", "changed", "own"], "{dearer:#}");
    let each = at(&dearer, "/difference").as_f64().expect("a number") / 600.0;
    assert!(each >= 1.0 && each.fract() == 0.0, "a round more in each of 600 calls: {each}");
    more_calls_of_the_renamed(&with("more"));
    std::fs::create_dir(place.file("threads")).expect("a folder");
    let text =
        "(use-modules (ice-9 threads))\n(exit (= (join-thread (call-with-new-thread (lambda () 7))) 7))\n";
    place.write("threads/app.scm", text);
    let words = ["same", "threads"].map(|folder| format!("{guile} --no-auto-compile {folder}/app.scm"));
    let answer = explain(&place, &["--runs", "2", &words[0], &words[1]]);
    assert!(
        answer.stdout.contains("several threads, of which only the main one is counted"),
        "{}",
        answer.exchange()
    );
}

/// The column about the code of the function `spin`, where both sides evaluate a text of their own. The rows if there
/// is none.
fn code_of_spin(page: &serde_json::Value) -> serde_json::Value {
    let rows = at(page, "/explain/script/rows").as_array().expect("rows").clone();
    let spin = rows.iter().find(|row| row["function"].as_str().is_some_and(|name| name.contains("spin")));
    spin.map_or(serde_json::Value::Array(rows.clone()), |row| row["code"].clone())
}

#[test]
fn code_that_a_script_evaluates_from_text_is_not_taken_for_unchanged() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    for (name, rounds) in [("old", 10), ("new", 14)] {
        let ruby = format!("def spin\n word = 0\n {rounds}.times do |i|\n word += i\n end\n word\nend\n");
        place.write(&format!("{name}.rb.txt"), &ruby);
        let python = format!("def spin():\n for i in range({rounds}): pass\nfor i in range(300): spin()\n");
        place.write(&format!("{name}.py.txt"), &python);
        let guile = format!("(define (spin i) (if (< i {rounds}) (spin (1+ i)) i))\n");
        place.write(&format!("{name}.scm.txt"), &guile);
    }
    place.write("app.rb", "eval File.read(ARGV[0])\n300.times { spin }\n");
    // Code of globals without a name belongs to no module.
    place.write("app.py", "import sys\nexec(open(sys.argv[1]).read(), {})\n");
    // The compiler would take most of the test's time if it optimised.
    place.write(
        "app.scm",
        "(use-modules (system base compile) (ice-9 textual-ports))\n\
         (define text (call-with-input-file (cadr (command-line)) get-string-all))\n\
         (compile (call-with-input-string text read) #:env (current-module) #:optimization-level 0)\n\
         (do ((i 0 (1+ i))) ((= i 300)) (spin 0))\n",
    );
    // Python gives the code of whatever it executes.
    for (interpreter, end, code) in [
        (Some("/usr/bin/ruby"), "rb", "?"),
        (python(), "py", "changed"),
        (Some("/usr/bin/guile --no-auto-compile"), "scm", "?"),
    ] {
        let Some(interpreter) =
            interpreter.filter(|words| Path::new(words.split(' ').next().unwrap_or(words)).exists())
        else {
            skip(&format!("the interpreter of .{end} is not installed"));
            continue;
        };
        let words = ["old", "new"].map(|name| format!("{interpreter} app.{end} {name}.{end}.txt"));
        let page = explain(&place, &["--runs", "2", &words[0], &words[1]]).json();
        assert_eq!(code_of_spin(&page), code, "{interpreter}");
    }
}
