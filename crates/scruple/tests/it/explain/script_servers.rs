//! `scruple explain --url` of servers that are scripts: by the functions of the script, which the interpreter counts.

use crate::explain::explain;
use crate::explain::scripts::code_of_spin;
use crate::programs::{has_valgrind, python, skip};
use crate::support::{Place, at, free_port};
use std::process::Command;

/// Explains two servers. They must differ most in `function`, which each request calls once. Returns the explanation.
fn explained(place: &Place, port: &str, commands: [&str; 2], function: &str) -> serde_json::Value {
    let url = format!("http://127.0.0.1:{port}/");
    let words = ["--requests", "12", "--runs", "2", "--url", &url, commands[0], commands[1]];
    let answer = explain(place, &words);
    let page = answer.json();
    let script = at(&page, "/explain/script");
    assert_eq!(at(script, "/rows/0/function"), function, "{}", answer.exchange());
    assert_eq!(at(script, "/rows/0/code"), "changed", "{}", answer.exchange());
    assert_eq!(at(script, "/rows/0/calls"), &serde_json::json!([12, 12]), "{}", answer.exchange());
    let sentence = at(&page, "/explain/sentences").to_string();
    assert!(sentence.contains(&format!("It comes from {function}")), "{sentence}");
    let remarks = at(&page, "/explain/remarks").to_string();
    assert!(
        remarks.contains("counted over 12 requests, with the start and the end of each server"),
        "{remarks}"
    );
    page
}

#[test]
fn additional_work_of_a_python_server_is_attributed_to_its_function() {
    let Some(python) = python().filter(|_| has_valgrind()) else { return };
    let place = Place::new();
    let port = free_port();
    for (name, rounds) in [("old.py", 1000), ("new.py", 3000)] {
        let text = format!(
            "import socket\n\
             def work():\n    total = 0\n    for i in range({rounds}): total += i\n    return total\n\
             listening = socket.create_server(('127.0.0.1', {port}))\n\
             while True:\n    peer, _ = listening.accept()\n    while peer.recv(65536):\n        work()\n\
             \x20       peer.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n')\n"
        );
        place.write(name, &text);
    }
    explained(&place, &port, [&format!("{python} old.py"), &format!("{python} new.py")], "work");
}

/// Node itself: a shim of a version manager would run a shell as well.
fn node() -> Option<String> {
    let found = Command::new("node").args(["-p", "process.execPath"]).output();
    if found.is_err() {
        skip("Node is not installed");
    }
    Some(String::from_utf8_lossy(&found.ok()?.stdout).trim().to_owned())
}

#[test]
fn additional_work_of_a_javascript_server_is_attributed_to_its_function() {
    let Some(node) = node().filter(|_| has_valgrind()) else { return };
    let place = Place::new();
    let port = free_port();
    for (folder, rounds) in [("one", 1000), ("other", 3000)] {
        std::fs::create_dir(place.file(folder)).expect("a folder");
        let text = format!(
            "exports.work = function () {{ let total = 0; for (let i = 0; i < {rounds}; i++) total += i; return total }}\n"
        );
        place.write(&format!("{folder}/work.js"), &text);
        let spin = format!(
            "globalThis.spin = function spin() {{ for (let i = 0; i < {rounds} / 100; i++) i + 1 }}\n"
        );
        place.write(&format!("{folder}/spin.txt"), &spin);
        // Node is slow where it is counted, so that one program has both a module and code from a text.
        let text = format!(
            "const {{ work }} = require('./work.js')\n\
             ;(0, eval)(require('fs').readFileSync(__dirname + '/spin.txt', 'utf8'))\n\
             const answers = (_, answer) => {{ spin(); answer.end(String(work())) }}\n\
             require('http').createServer(answers).listen({port}, '127.0.0.1')\n"
        );
        place.write(&format!("{folder}/app.js"), &text);
    }
    let words = ["one", "other"].map(|folder| format!("{node} {folder}/app.js"));
    let page = explained(&place, &port, [&words[0], &words[1]], "exports.work");
    let script = at(&page, "/explain/script");
    assert_eq!(at(script, "/counts"), "executed tokens of JavaScript");
    assert_eq!(at(script, "/rows/0/file"), "module work.js");
    assert_eq!(at(script, "/rows/0/parts/0/kind"), "own");
    assert_eq!(code_of_spin(&page), "?");
}
