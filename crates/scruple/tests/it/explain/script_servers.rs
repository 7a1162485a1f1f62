//! `scruple explain --url` of servers that are scripts: by the functions of the script, which the interpreter counts.

use crate::explain::explain;
use crate::explain::scripts::node;
use crate::programs::{has_valgrind, python};
use crate::support::{Place, at, free_port};

/// The servers must differ in `work` by 2000 rounds of its loop; `work` must be the first row.
fn is_explained(place: &Place, port: &str, commands: [&str; 2], loads: u64) {
    let url = format!("http://127.0.0.1:{port}/");
    let words = ["--requests", "12", "--runs", "2", "--url", &url, commands[0], commands[1]];
    let answer = explain(place, &words);
    let page = answer.json();
    let script = at(&page, "/explain/script");
    assert_eq!(at(script, "/rows/0/function"), "work", "{}", answer.exchange());
    assert_eq!(at(script, "/rows/0/code"), "changed", "{}", answer.exchange());
    assert_eq!(at(script, "/rows/0/calls"), &serde_json::json!([loads, loads]), "{}", answer.exchange());
    let sentence = at(&page, "/explain/sentences").to_string();
    assert!(sentence.contains("It comes from work"), "{sentence}");
    let remarks = at(&page, "/explain/remarks").to_string();
    assert!(
        remarks.contains("counted over 12 requests, with the start and the end of each server"),
        "{remarks}"
    );
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
    is_explained(&place, &port, [&format!("{python} old.py"), &format!("{python} new.py")], 12);
}

#[test]
fn additional_work_of_a_javascript_server_is_attributed_to_its_function() {
    let Some(node) = node().filter(|_| has_valgrind()) else { return };
    let place = Place::new();
    let port = free_port();
    for (name, rounds) in [("old.js", 1000), ("new.js", 3000)] {
        let text = format!(
            "function work() {{ let total = 0; for (let i = 0; i < {rounds}; i++) total += i; return total }}\n\
             require('http').createServer((_, answer) => answer.end(String(work()))).listen({port}, '127.0.0.1')\n"
        );
        place.write(name, &text);
    }
    is_explained(&place, &port, [&format!("{node} old.js"), &format!("{node} new.js")], 12);
}
