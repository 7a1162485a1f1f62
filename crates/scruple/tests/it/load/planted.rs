//! Servers whose requests have a known cost, which a load must find and name.

use crate::programs::{has_valgrind, skip};
use crate::support::{Answer, Place, at, free_port};
use scruple_core::unit;
use std::process::Command;

/// `server PORT STEPS LEAK PAUSE`: for each request, makes STEPS steps and keeps LEAK bytes. At every hundredth request
/// it sleeps for PAUSE milliseconds, or does not answer at all if PAUSE is negative. A fifth argument is the number of
/// blocks that it allocates and frees for each connection. If it is negative, the server refuses each request with the
/// status 503 and closes the connection.
pub const SERVER: &str = r#"
#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
static void leave(int signal) { (void)signal; exit(0); }
int main(int argc, char **argv) {
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, world\n";
    long steps = atol(argv[2]), leak = atol(argv[3]), pause = atol(argv[4]), served = 0;
    static const char busy[] = "HTTP/1.1 503 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    long blocks = argc > 5 ? atol(argv[5]) : 0;
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
    int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    signal(SIGTERM, leave);
    signal(SIGPIPE, SIG_IGN);
    if (bind(listener, (void *)&place, sizeof place) || listen(listener, 16)) return 1;
    for (;;) {
        char text[4096];
        int stream = accept(listener, 0, 0);
        for (long block = 0; block < blocks; block++) { char *volatile unused = malloc(16); free(unused); }
        while (read(stream, text, sizeof text) > 0) {
            for (volatile long step = 0; step < steps; step++) {}
            if (leak) { char *kept = malloc(leak); if (kept) memset(kept, 1, leak); }
            if (pause && ++served % 100 == 0) {
                if (pause < 0) continue;
                usleep(pause * 1000);
            }
            if (blocks < 0) { if (write(stream, busy, sizeof busy - 1)) break; }
            if (write(stream, answer, sizeof answer - 1) < 0) break;
        }
        close(stream);
    }
}
"#;

/// Loads [`SERVER`] over one connection. `costs` are its arguments STEPS, LEAK and PAUSE.
fn load(place: &Place, requests: &str, costs: [&str; 3], more: &[&str]) -> Answer {
    let (port, server) = (free_port(), place.compile("server", SERVER, &[]));
    let (url, server) = (format!("http://127.0.0.1:{port}/"), server.display().to_string());
    let mut words = vec!["load", &url, "--json", "--no-store", "-c", "1", "-n", requests, "-d", "60s"];
    words.extend(more);
    words.extend(["--", &server, &port, costs[0], costs[1], costs[2]]);
    place.run(words)
}

#[test]
fn a_hundred_leaked_bytes_per_request_are_found_and_their_absence_too() {
    let place = Place::new();
    let leaky = load(&place, "12000", ["0", "100", "0"], &["--rate", "4000"]).json();
    let memory = at(&leaky, "/load/servers/0/memory/0");
    assert_eq!(memory["leak"], true, "{memory}");
    let grown = memory["bytes_per_thousand"].as_f64().expect("a number");
    assert!((80_000.0..160_000.0).contains(&grown), "100 bytes and the allocator's own 12: {grown}");
    let remarks = leaky.to_string();
    assert!(remarks.contains("‘scruple inspect memory -i -- timeout -s INT 60 "), "no command: {leaky:#}");
    assert!(
        remarks.contains(" 0 100 0’ runs, which then shows the code that keeps it"),
        "no server: {leaky:#}"
    );
    let dirty = |side: &str| -> u64 {
        let rows = at(&leaky, &format!("/load/servers/0/memory_map/{side}")).as_array().expect("rows");
        rows.iter().filter_map(|row| row["private_dirty"].as_u64()).sum()
    };
    assert!(dirty("after") >= dirty("before") + 1_000_000, "{} to {}", dirty("before"), dirty("after"));
    let mallocs = at(&leaky, "/arms/0/metrics/request.malloc.bytes/estimate").as_f64().expect("a number");
    assert!((100.0..102.0).contains(&mallocs), "{mallocs}");
    let tight = load(&place, "6000", ["0", "0", "0"], &["--rate", "4000"]).json();
    assert_eq!(at(&tight, "/load/servers/0/memory/0/leak"), false);
}

#[test]
fn allocations_of_a_connection_are_not_those_of_its_requests() {
    let place = Place::new();
    let (port, server) = (free_port(), place.compile("server", SERVER, &[]).display().to_string());
    let url = format!(":{port}");
    let words = ["load", &url, "--json", "--no-store", "-c", "1", "--rate", "200", "-d", "1s"];
    let answer = place.run(words.into_iter().chain(["--", &server, &port, "0", "1", "0", "1000"])).json();
    let mallocs = at(&answer, "/arms/0/metrics/request.malloc.count/estimate").as_f64().expect("a number");
    assert!((1.0..1.1).contains(&mallocs), "one for each request: {mallocs}");
}

#[test]
fn five_per_cent_more_instructions_are_found() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let (old, new) = (free_port(), free_port());
    let server = place.compile("server", SERVER, &[]).display().to_string();
    let against = format!("old=:{old} -- {server} {old} 20000 0 0");
    let answer = place.run([
        "load",
        &format!(":{new}"),
        "--against",
        &against,
        "--no-cost",
        "--with=instructions=60",
        "--json",
        "-c",
        "1",
        "-n",
        "200",
        "--margin",
        "2%",
        "--",
        &server,
        &new,
        "21000",
        "0",
        "0",
    ]);
    let json = answer.json();
    let comparisons = json["comparisons"].as_array().expect("comparisons");
    let found = comparisons.iter().find(|found| found["metric"] == "request.instructions");
    let found = found.unwrap_or_else(|| panic!("no instructions: {}", answer.exchange()));
    let effect = found["effect"].as_f64().expect("a number");
    assert!((1.04..1.06).contains(&effect), "{found}");
    assert_eq!((&found["verdict"], &found["direction"]), (&"different".into(), &"worse".into()));
    let first = at(&json, "/load/servers/0/instructions/functions/0/name");
    assert_eq!(first, "main", "the steps are counted there");
    let sum: f64 = json["load"]["servers"][0]["instructions"]["functions"]
        .as_array()
        .expect("functions")
        .iter()
        .filter_map(|function| function["own"].as_f64())
        .sum();
    let total = at(&json, "/load/servers/0/instructions/total").as_f64().expect("a number");
    assert!((sum / total - 1.0).abs() < 1e-9, "functions add up to callgrind's total: {sum} of {total}");
}

#[test]
fn a_pause_of_the_server_is_in_the_longest_response() {
    let place = Place::new();
    let answer = load(&place, "400", ["0", "0", "60"], &["--no-cost", "--warmup", "off"]).json();
    let longest = at(&answer, "/load/servers/0/response/max").as_f64().expect("a number");
    assert!(longest >= 60e6, "{longest}");
}

/// Loads a server for four seconds, during which it stalls for one second. The answer is in JSON.
fn a_second_of_silence(place: &Place, limit: &str) -> Answer {
    let source = include_str!("../../../../measure/tests/load/planted.c");
    let (port, server) = (free_port(), place.compile("planted", source, &["-lm"]).display().to_string());
    let url = format!("http://127.0.0.1:{port}/");
    let words =
        ["load", &url, "--json", "--no-store", "--no-cost", "--rate", "300", "-d", "4s", "--limit", limit];
    place.run(words.into_iter().chain(["--", &server, &port, "stall=1000", "at=1500"]))
}

#[test]
fn a_limit_does_not_pass_over_one_stall() {
    let place = Place::new();
    for limit in ["load.max<100ms", "load.p90<50ms"] {
        let answer = a_second_of_silence(&place, limit);
        let json = answer.json();
        let longest = at(&json, "/load/servers/0/response/max").as_f64().expect("a number");
        assert!(longest > 0.9e9, "{longest}");
        // A window is void if the machine kept the generator from its core: nothing is known of the server then.
        let valid = at(&json, "/load/servers/0/valid") == true;
        if valid && limit.starts_with("load.max") {
            // Bounds follow if the machine delayed the generator.
            let found = at(&json, "/limits/0/found").as_str().expect("a text");
            let length = unit::quantity(longest, &unit::Unit::Nanoseconds);
            assert!(found.starts_with(&length), "{}", answer.exchange());
        }
        // A single response can exceed `load.max`. Percentiles stay undecided, because one stall does not tell how
        // often stalls occur.
        let exceeded = valid && (limit.starts_with("load.max") || answer.code == 1);
        assert_eq!(answer.code, if exceeded { 1 } else { 3 }, "{limit}: {}", answer.exchange());
    }
    let kept = a_second_of_silence(&place, "load.max<60s");
    let valid = at(&kept.json(), "/load/servers/0/valid") == true;
    assert_eq!(kept.code, if valid { 0 } else { 3 }, "{}", kept.exchange());
}

#[test]
fn passes_do_not_wait_long_for_a_server_that_leaves_requests_unanswered() {
    let place = Place::new();
    let more = ["--timeout", "100ms", "-i", "--windows", "2"];
    let answer = load(&place, "300", ["0", "0", "-1"], &more).json();
    let absent = at(&answer, "/arms/0/metrics/request.malloc.count/absent").as_str().expect("a reason");
    assert!(absent.contains("no answer within 400 ms"), "{absent}");
}

#[test]
fn a_pass_has_no_more_connections_than_requests_in_a_window() {
    let place = Place::new();
    let (port, server) = (free_port(), place.compile("server", SERVER, &[]));
    let (url, server) = (format!("http://127.0.0.1:{port}/"), server.display().to_string());
    let words = ["load", &url, "--json", "--no-store", "-c", "16", "-n", "64", "-i", "--windows", "2", "--"];
    let answer = place.run(words.into_iter().chain([server.as_str(), &port, "0", "24", "0", "-1"]));
    let count = at(&answer.json(), "/arms/0/metrics/request.malloc.count/estimate").as_f64();
    assert_eq!(count, Some(1.0), "{}", answer.exchange());
}

/// A server in Go that allocates 100,000 bytes for each request.
const GO: &str = r#"
package main

import (
	"io"
	"net"
	"os"
)

var kept []byte

func main() {
	listener, _ := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	for {
		stream, err := listener.Accept()
		if err != nil {
			return
		}
		text := make([]byte, 4096)
		for {
			if n, _ := stream.Read(text); n == 0 {
				break
			}
			kept = make([]byte, 100000)
			io.WriteString(stream, "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, world\n")
		}
		stream.Close()
	}
}
"#;

#[test]
fn a_go_server_is_read_while_it_runs() {
    let place = Place::new();
    let source = place.write("server.go", GO);
    let server = place.file("go-server");
    let built = Command::new("go").args(["build", "-o"]).arg(&server).arg(&source).status();
    if !built.is_ok_and(|status| status.success()) {
        return skip("there is no go that builds here");
    }
    let port = free_port();
    let (url, server) = (format!("http://127.0.0.1:{port}/"), server.display().to_string());
    let words = |more: &[&'static str]| {
        let mut words: Vec<String> =
            ["load", &url, "--json", "--no-store", "-c", "1", "--rate", "500"].map(String::from).to_vec();
        words.extend(more.iter().map(|word| (*word).to_owned()));
        words.extend(["--".to_owned(), server.clone(), port.clone()]);
        words
    };
    let answer = place.run(words(&["-n", "400", "-d", "60s"]));
    let json = answer.json();
    // An allocation of 100,000 bytes takes a size class of 106,496 bytes.
    let each = at(&json, "/load/servers/0/runtime/alloc.bytes").as_f64();
    assert!(each.is_some_and(|each| (100_000.0..130_000.0).contains(&each)), "{}", answer.exchange());
    // The collector runs about every 4 MB, and the load sends at least 600 requests.
    let pauses = at(&json, "/load/servers/0/pauses");
    assert!(pauses["count"].as_u64().is_some_and(|count| count >= 5), "{pauses}");
    assert!(pauses["total"].as_u64() >= pauses["longest"].as_u64(), "{pauses}");
    // Scruple finds the server below a wrapper, and below a shell that stays its parent.
    let shell = format!("'{server}' {port} & trap 'kill $!' INT TERM; wait");
    for wrapper in [&["env", &server, &port][..], &["sh", "-c", &shell]] {
        let words = words(&["-n", "400", "-d", "60s", "--warmup", "off", "--windows", "2"]);
        let words = words[..words.len() - 2].iter().map(String::as_str);
        let answer = place.run(words.chain(wrapper.iter().copied()));
        let json = answer.json();
        let each = at(&json, "/load/servers/0/runtime/alloc.bytes").as_f64();
        assert!(each.is_some_and(|each| (100_000.0..130_000.0).contains(&each)), "{}", answer.exchange());
    }
    if !has_valgrind() {
        return;
    }
    // Callgrind sometimes fails on Go programs, and collections may fall into some batches of requests only. The metric is
    // then absent with this reason, and not 0.
    let answer = place.run(words(&["-n", "20", "--windows", "1", "--with=instructions=240"]));
    let found = at(&answer.json(), "/load/servers/0/instructions").clone();
    match found["absent"].as_str() {
        Some(why) => {
            let reasons = ["callgrind itself failed", "differ by more than the requests cost"];
            assert!(reasons.iter().any(|reason| why.contains(reason)), "{why}");
        }
        None => {
            let main =
                found["functions"].as_array().expect("functions").iter().any(|of| of["name"] == "main.main");
            assert!(main && found["total"].as_f64().is_some_and(|total| total > 1000.0), "{found}");
        }
    }
}

/// A server in Python that collects garbage at every fiftieth request, and at no other time. A collection takes 0.3 s,
/// longer than a busy machine delays a request.
const COLLECTING: &str = "
import gc, socket, sys, time
class Slow:
    def __init__(self):
        self.me = self
    def __del__(self):
        time.sleep(0.3)
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(('127.0.0.1', int(sys.argv[1])))
listener.listen(16)
gc.disable()
served = 0
while True:
    stream, _ = listener.accept()
    while stream.recv(4096):
        served += 1
        if served % 50 == 0:
            Slow()
            gc.collect()
        stream.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 13\\r\\n\\r\\nHello, world\\n')
";

#[test]
fn slow_requests_that_met_a_collection_are_counted() {
    let place = Place::new();
    place.write("server.py", COLLECTING);
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/");
    let words =
        ["load", &url, "--export", "load.json", "-c", "1", "--rate", "100", "-n", "100", "-d", "60s", "--"];
    let answer = place.run(words.into_iter().chain(["python3", "server.py", &port]));
    assert!(answer.stdout.contains("pauses for collections: "), "{}", answer.exchange());
    let json: serde_json::Value = serde_json::from_str(&place.read("load.json")).expect("JSON");
    let pauses = at(&json, "/load/servers/0/pauses");
    let number = |name: &str| pauses[name].as_u64().unwrap_or_else(|| panic!("{}", answer.exchange()));
    // About 300 requests meet 6 collections. Whichever request is answered late, a collection is on its way.
    assert_eq!(number("count"), number("requests") / 50, "{pauses}");
    assert!(number("count") >= 4 && number("longest") > 300_000_000, "{pauses}");
    assert!(number("slow_that_met_one") > 0 && number("slow_that_met_one") <= number("slow"), "{pauses}");
}

#[test]
fn counts_do_not_depend_on_the_rate_and_pauses_are_compared_at_it() {
    let place = Place::new();
    place.write("server.py", COLLECTING);
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/");
    let words =
        ["load", &url, "--json", "--no-store", "-c", "1", "--rate", "2", "-n", "4", "-d", "60s", "--"];
    let answer = place.run(words.into_iter().chain(["python3", "server.py", &port]));
    let json = answer.json();
    // Of 10 requests and of 60, only the latter reach the fiftieth, at which the server collects.
    let collections = at(&json, "/load/servers/0/runtime/gc.count").as_f64();
    assert!(collections.is_some_and(|each| (each - 0.02).abs() < 1e-9), "{}", answer.exchange());
    // In the run at the rate, 3 s have 6 requests.
    let pauses = at(&json, "/load/servers/0/pauses");
    assert!(pauses["requests"].as_u64().is_some_and(|requests| (4..=7).contains(&requests)), "{pauses}");
    assert_eq!(pauses["count"], 0, "{pauses}");
}

/// A server in C, below a shell that also keeps a helper in Python waiting.
#[test]
fn the_runtime_of_a_helper_that_only_waits_is_not_that_of_the_server() {
    let place = Place::new();
    place.write("helper.py", "import sys\nopen('waits', 'w').close()\nsys.stdin.read()\n");
    let server = place.compile("server", SERVER, &[]).display().to_string();
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/");
    let script = format!(
        "rm -f waits; test -p never || mkfifo never; python3 helper.py <>never & helper=$!; \
         until test -e waits; do sleep 0.05; done; '{server}' {port} 0 0 0 & \
         trap \"kill -INT $helper; kill $!\" INT TERM; wait"
    );
    let words =
        ["load", &url, "--json", "--no-store", "-c", "1", "--rate", "500", "-n", "100", "-d", "60s", "--"];
    let answer = place.run(words.into_iter().chain(["sh", "-c", &script]));
    let absent = at(&answer.json(), "/load/servers/0/runtime/absent").clone();
    assert_eq!(absent, "no process with a language runtime ran under load", "{}", answer.exchange());
}

#[test]
fn answers_with_a_bad_status_are_requests_that_the_runtime_served() {
    let place = Place::new();
    let server = "
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Hello(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    wbufsize = -1
    served = 0
    def do_GET(self):
        Hello.served += 1
        self.send_response(500 if Hello.served % 10 == 0 else 200)
        self.send_header('Content-Length', '0')
        self.end_headers()
    def log_message(self, *words):
        pass
ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Hello).serve_forever()
";
    place.write("server.py", server);
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/");
    let words = ["load", &url, "--json", "--rate", "50", "-d", "2s", "-i", "--windows", "3"];
    let answer = place.run(words.into_iter().chain(["--", "python3", "server.py", &port]));
    let json = answer.json();
    let each = at(&json, "/load/servers/0/runtime/alloc.bytes").as_f64();
    assert!(each.is_some_and(|each| each > 1000.0), "{}", answer.exchange());
}
