//! The protocol: requests are lines of words, replies lines of JSON.

use crate::body::{Kind, Task};
use crate::by_hand;
use crate::case::Declaration;
use crate::clock::{self, Span};
use crate::heap::{self, Heap};
use crate::json::Object;
use crate::queue::{PassParameters, Passing};
use crate::team::{Measured, Skip, message};
use crate::test_run::TestRun;
use crate::{Entry, Work};
use std::collections::HashSet;
use std::env;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::exit;
use std::sync::OnceLock;
use std::time::Duration;

const IN: &str = "SCRUPLE_BENCH_IN";
const OUT: &str = "SCRUPLE_BENCH_OUT";
const MOST: u64 = 1 << 53;

/// The number of the process that serves.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// An error reply, sent instead of the answer.
struct Refusal {
    reply: Object,
    why: String,
    /// Whether the case cannot run here, which is no failure.
    skipped: bool,
    /// Whether this is a child process that a case has forked. It must not go on, because it would answer as well.
    child: bool,
}

impl Refusal {
    fn new(kind: &str, id: Option<usize>, text: &str) -> Refusal {
        let reply = Object::default().text("error", text).text("kind", kind);
        let reply = if let Some(id) = id { reply.integer("id", id as u64) } else { reply };
        Refusal { reply, why: text.to_owned(), skipped: false, child: false }
    }

    fn request(text: &str) -> Refusal {
        Refusal::new("request", None, text)
    }
}

/// One batch of a block, which a word of the request describes.
struct Batch {
    id: usize,
    kind: Kind,
    iterations: u64,
    threads: usize,
}

pub struct BenchServer {
    entries: Vec<Entry>,
    ready: Vec<bool>,
    heap: Heap,
    replies: Box<dyn Write>,
}

/// Serves the cases until the host sends `bye`, and returns the exit code.
pub fn main(entries: Vec<Entry>) -> i32 {
    let mut seen = HashSet::new();
    if let Some(duplicate) = entries.iter().find(|entry| !seen.insert(entry.declaration.identity())) {
        return end(&format!("two cases have the name {:?} and the same params", duplicate.declaration.name));
    }
    let (input, output) = match (env::var_os(IN), env::var_os(OUT)) {
        (None, None) => {
            let words: Vec<OsString> = env::args_os().collect();
            return match TestRun::requested(&words) {
                Some(request) => request.run(BenchServer::new(entries, Box::new(io::sink()))),
                None => by_hand::main(&words, entries.iter().map(|entry| &entry.declaration)),
            };
        }
        (Some(input), Some(output)) => (input, output),
        _ => return end(&format!("only one of {IN} and {OUT} is set")),
    };
    let opened = File::open(&input).map_err(|e| format!("cannot open {}: {e}", input.display())).and_then(
        |requests| {
            let replies = OpenOptions::new().write(true).open(&output);
            Ok((requests, replies.map_err(|e| format!("cannot open {}: {e}", output.display()))?))
        },
    );
    let (requests, replies) = match opened {
        Ok(both) => both,
        Err(why) => return end(&why),
    };
    keep_from_children(&[input, output]);
    let mut server = BenchServer::new(entries, Box::new(BufWriter::new(replies)));
    let mut requests = BufReader::new(requests);
    let mut line = Vec::new();
    while requests.read_until(b'\n', &mut line).is_ok_and(|_| line.pop() == Some(b'\n')) {
        let request = String::from_utf8_lossy(&line);
        if request == "bye" {
            server.dismiss_all();
            server.say(Object::default().flag("bye", true));
            server.flush();
            return 0;
        }
        let child = server.answer(&request).is_err_and(|Refusal { reply, child, .. }| {
            server.say(reply);
            child
        });
        server.flush();
        if child {
            end_child();
        }
        line.clear();
    }
    server.dismiss_all();
    0
}

/// Keeps processes that a case starts from writing to the host's pipe.
fn keep_from_children(paths: &[OsString]) {
    // SAFETY: the program has started no thread yet, or at least no thread of the SDK changes the environment.
    unsafe {
        env::remove_var(IN);
        env::remove_var(OUT);
    }
    #[cfg(unix)]
    for descriptor in paths.iter().filter_map(|p| p.to_str()?.strip_prefix("/dev/fd/")?.parse::<i32>().ok()) {
        unsafe extern "C" {
            fn fcntl(descriptor: i32, command: i32, ...) -> i32;
        }
        const F_SETFD: i32 = 2;
        const FD_CLOEXEC: i32 = 1;
        // SAFETY: this sets a flag of a descriptor and touches no memory.
        unsafe { fcntl(descriptor, F_SETFD, FD_CLOEXEC) };
    }
    #[cfg(not(unix))]
    let _ = paths;
}

/// Ends a child process that a case has forked, without cleaning up: what it would clean up is the program's.
fn end_child() -> ! {
    unsafe extern "C" {
        fn _exit(code: i32) -> !;
    }
    // SAFETY: this ends the process and touches no memory.
    unsafe { _exit(1) }
}

pub fn end(text: &str) -> i32 {
    let program = env::args().next().unwrap_or_default();
    eprintln!("{program}: {text}");
    2
}

fn parse_number(word: &str) -> Option<u64> {
    let digits = !word.is_empty() && word.len() <= 16 && word.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| word.parse().ok()).flatten().filter(|n| *n <= MOST)
}

/// Calls code of a case. Turns a panic of it into an error, and so the return of a child process that it has forked.
fn guarded<T>(id: usize, f: impl FnOnce() -> Result<T, String>) -> Result<T, Refusal> {
    let result = catch_unwind(AssertUnwindSafe(f));
    if PROCESS.get().is_some_and(|process| *process != std::process::id()) {
        let how = match &result {
            Ok(_) => "returned from it".to_owned(),
            Err(panic) => format!("left it with the panic ‘{}’", message(&**panic)),
        };
        let why = format!("a child that the case forked {how}; it must end in the case, as by _exit");
        let refusal = Refusal::new("exception", Some(id), &why);
        return Err(Refusal { reply: refusal.reply.flag("fatal", true), child: true, ..refusal });
    }
    let result = match result {
        Ok(result) => result,
        Err(panic) => match panic.downcast_ref::<Skip>() {
            Some(Skip(why)) => {
                return Err(Refusal { skipped: true, ..Refusal::new("skipped", Some(id), why) });
            }
            None => Err(message(&*panic)),
        },
    };
    result.map_err(|why| Refusal::new("exception", Some(id), &why))
}

impl BenchServer {
    fn new(entries: Vec<Entry>, replies: Box<dyn Write>) -> BenchServer {
        PROCESS.get_or_init(std::process::id);
        BenchServer { ready: vec![false; entries.len()], entries, heap: Heap::look(), replies }
    }

    pub fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.entries.iter().map(|entry| &entry.declaration)
    }

    /// Runs a case once, and its check. Returns why it was skipped, if it was, or else why it failed.
    pub fn test(&mut self, id: usize) -> Result<Option<String>, String> {
        let verdict = self.prepare(id).and_then(|()| self.verdict(id));
        let ended = self.dismiss(id);
        match verdict {
            Err(refusal) if refusal.child => end_child(),
            Err(refusal) if refusal.skipped => return Ok(Some(refusal.why)),
            Err(refusal) => return Err(refusal.why),
            Ok((verdict, _)) => verdict?,
        }
        ended.map(|()| None).map_err(|refusal| refusal.why)
    }

    fn say(&mut self, reply: Object) {
        let mut line = reply.done();
        line.push('\n');
        // If the host has ended, the next request shows it.
        let _ = self.replies.write_all(line.as_bytes());
    }

    fn flush(&mut self) {
        let _ = self.replies.flush();
    }

    fn answer(&mut self, request: &str) -> Result<(), Refusal> {
        let (word, rest) = request.split_once(' ').map_or((request, None), |(word, rest)| (word, Some(rest)));
        match (word, rest) {
            ("hello", Some(version)) if parse_number(version).is_some() => self.say(hello(self.heap)),
            ("hello", _) => return Err(Refusal::request("hello takes one version number")),
            ("cases", None) => self.list(),
            ("block", Some(words)) => self.block(words)?,
            ("once", Some(id)) => self.once(id)?,
            ("reset", Some(id)) => {
                let id = self.id(id)?;
                self.dismiss(id)?;
                self.prepare(id)?;
                self.say(Object::default().integer("reset", id as u64));
            }
            _ => return Err(Refusal::request(&format!("unknown request: {request}"))),
        }
        Ok(())
    }

    fn list(&mut self) {
        for id in 0..self.entries.len() {
            let case = self.entries[id].declaration.tell(id);
            self.say(Object::default().object("case", case));
        }
        self.say(Object::default().text("end", "cases").integer("count", self.entries.len() as u64));
    }

    fn id(&self, word: &str) -> Result<usize, Refusal> {
        let id = parse_number(word)
            .ok_or_else(|| Refusal::request(&format!("not the id of a case: {word}")))?
            as usize;
        if id < self.entries.len() {
            return Ok(id);
        }
        Err(Refusal::new("unknown-case", Some(id), &format!("there is no case {id}")))
    }

    fn batch(&self, word: &str) -> Result<Batch, Refusal> {
        let parts: Vec<&str> = word.split(':').collect();
        let parsed = match parts[..] {
            [id, kind @ ("c" | "t"), n] => {
                parse_number(id).zip(parse_number(n)).map(|(_, n)| (id, kind, n, 1))
            }
            [id, kind @ ("c" | "t"), n, threads] => parse_number(id)
                .zip(parse_number(n))
                .zip(parse_number(threads))
                .map(|((_, n), threads)| (id, kind, n, threads)),
            _ => None,
        };
        let Some((id, kind, iterations, threads)) = parsed else {
            return Err(Refusal::request(&format!("not ID:KIND:ITERATIONS[:THREADS]: {word}")));
        };
        let id = self.id(id)?;
        let refuse = |kind: &str, why: &str| Err(Refusal::new(kind, Some(id), &format!("{why}: {word}")));
        let declaration = &self.entries[id].declaration;
        if iterations < 1 || !(1..=4096).contains(&threads) {
            return refuse("request", "iterations and threads begin at 1, threads end at 4096");
        }
        if declaration.max_iterations.is_some_and(|most| iterations > most) {
            return refuse("request", "more iterations than the case's max_iterations");
        }
        let threads = threads as usize;
        match &declaration.passing {
            Some(Passing { producers, consumers, .. })
                if threads != 1 && threads != producers + consumers =>
            {
                return refuse("request", "a concurrency case has its own number of threads");
            }
            None if threads > 1 && declaration.threads.is_empty() => {
                return refuse("unsupported", "only the cases of case_threads run on several threads");
            }
            _ => {}
        }
        let kind = if kind == "c" { Kind::Case } else { Kind::Tare };
        Ok(Batch { id, kind, iterations, threads })
    }

    fn prepare(&mut self, id: usize) -> Result<(), Refusal> {
        if let (false, Work::Body(body)) = (self.ready[id], &mut self.entries[id].work) {
            guarded(id, || {
                body.prepare();
                Ok(())
            })?;
            self.ready[id] = true;
        }
        Ok(())
    }

    fn dismiss(&mut self, id: usize) -> Result<(), Refusal> {
        if let (true, Work::Body(body)) = (self.ready[id], &mut self.entries[id].work) {
            self.ready[id] = false;
            guarded(id, || {
                body.dismiss();
                Ok(())
            })?;
        }
        Ok(())
    }

    fn dismiss_all(&mut self) {
        for id in 0..self.entries.len() {
            // The message of a panic in `drop` is on stderr already.
            let _ = self.dismiss(id);
        }
    }

    fn block(&mut self, words: &str) -> Result<(), Refusal> {
        let batches = words.split(' ').map(|word| self.batch(word)).collect::<Result<Vec<_>, _>>()?;
        for batch in &batches {
            self.prepare(batch.id)?;
        }
        let (mut entries, mut lost) = (Vec::with_capacity(batches.len()), 0);
        for batch in &batches {
            let (entry, missed) = self.run(batch)?;
            entries.push(entry.done());
            lost += missed;
        }
        self.say(Object::default().list("block", entries).integer("lost", lost));
        Ok(())
    }

    fn run(&mut self, batch: &Batch) -> Result<(Object, u64), Refusal> {
        let Batch { id, kind, iterations, threads } = *batch;
        if matches!(self.entries[id].work, Work::Flow(_)) {
            return self.run_flow(batch);
        }
        let heap = self.heap;
        let Entry { declaration, work: Work::Body(body) } = &mut self.entries[id] else { unreachable!() };
        let timing = declaration.timing;
        let measured = guarded(id, || body.batch(Task { kind, timing, iterations, threads, heap }))?;
        let mut entry = whole_entry(batch, &measured, iterations * threads as u64);
        if threads > 1 {
            let each = measured.spans.iter().map(|span| thread_object(iterations, span).done());
            entry = entry.list("threads", each);
        }
        Ok((entry, heap::lost(&measured.before, &measured.after)))
    }

    fn run_flow(&mut self, batch: &Batch) -> Result<(Object, u64), Refusal> {
        let Batch { id, kind, iterations, .. } = *batch;
        let passed = self.pass(id, kind, iterations, false)?;
        let measured = &passed.measured;
        let mut entry = whole_entry(batch, measured, iterations);
        let mut fault = None;
        if kind == Kind::Case {
            let ledger = passed.ledger();
            let (wall, cpu) = whole_times(&measured.spans);
            entry = passed.tell(&ledger, entry, cpu.map(|cpu| cpu as f64 / wall as f64));
            fault = ledger.fault();
        }
        let each = measured.spans.iter().zip(&passed.moved).enumerate();
        let each =
            each.map(|(i, (span, moved))| span_object(*moved, span).text("role", passed.role(i)).done());
        entry = entry.list("threads", each);
        match fault {
            Some(why) => {
                let refusal = Refusal::new("ledger", Some(id), &why);
                Err(Refusal { reply: refusal.reply.object("batch", entry), ..refusal })
            }
            None => Ok((entry, heap::lost(&measured.before, &measured.after))),
        }
    }

    fn pass(
        &mut self,
        id: usize,
        kind: Kind,
        elements: u64,
        stamped: bool,
    ) -> Result<crate::queue::Passed, Refusal> {
        let Entry { declaration, work: Work::Flow(flow) } = &mut self.entries[id] else { unreachable!() };
        let Some(passing) = &declaration.passing else { unreachable!() };
        let replies = std::cell::RefCell::new(&mut self.replies);
        let stalled = |put: u64, got: u64, panic: Option<String>, since: Duration| {
            let reply = match &panic {
                Some(panic) => Refusal::new("exception", Some(id), panic).reply.flag("fatal", true),
                None => Object::default()
                    .integer("stalled", id as u64)
                    .number("seconds", since.as_secs_f64())
                    .integer("put", put)
                    .integer("got", got),
            };
            let mut replies = replies.borrow_mut();
            let told = writeln!(replies, "{}", reply.done()).and_then(|()| replies.flush());
            // A thread that panicked is the reason. The others cannot be ended, so the program ends.
            if panic.is_some() || told.is_err() {
                exit(1)
            }
        };
        let order = PassParameters { kind, elements, stamped, heap: self.heap, stalled: &stalled };
        guarded(id, || flow.pass(passing, order))
    }

    fn once(&mut self, word: &str) -> Result<(), Refusal> {
        let id = self.id(word)?;
        self.prepare(id)?;
        let (verdict, reply) = self.verdict(id)?;
        self.say(match verdict {
            Ok(()) => reply.flag("ok", true),
            Err(why) => reply.flag("ok", false).text("why", &why),
        });
        Ok(())
    }

    /// Runs a case once. Returns what its check says, and the reply without that.
    fn verdict(&mut self, id: usize) -> Result<(Result<(), String>, Object), Refusal> {
        let reply = Object::default().integer("once", id as u64);
        Ok(match &mut self.entries[id].work {
            Work::Body(body) => match guarded(id, || Ok(body.once()))? {
                None => (Ok(()), reply.flag("checked", false)),
                Some(Ok(None)) => (Ok(()), reply.flag("checked", true)),
                Some(Ok(Some(digest))) => (Ok(()), reply.flag("checked", true).text("digest", &digest)),
                Some(Err(why)) => (Err(why), reply.flag("checked", true)),
            },
            Work::Flow(_) => {
                let elements = self.entries[id].declaration.passing.as_ref().map_or(0, |p| p.once_elements);
                let passed = self.pass(id, Kind::Case, elements, true)?;
                (
                    passed.ledger().fault().map_or(Ok(()), Err),
                    passed.tell_fairness(reply.flag("checked", true)),
                )
            }
        })
    }
}

fn hello(heap: Heap) -> Object {
    let clock = |scope| {
        let clock = Object::default().integer("resolution", 1);
        if scope { clock.text("scope", "thread") } else { clock }
    };
    let mut clocks = Object::default().object("time.wall", clock(false));
    if clock::thread_cpu().is_some() {
        clocks = clocks.object("time.cpu", clock(true));
    }
    Object::default()
        .integer("scruple", 1)
        .text("sdk", concat!("scruple-rust ", env!("CARGO_PKG_VERSION")))
        .text("language", "rust")
        .text("runtime", if cfg!(debug_assertions) { "rustc, with debug assertions" } else { "rustc" })
        .object("clocks", clocks)
        .list("features", ["\"threads\"".to_owned(), "\"queues\"".to_owned()])
        .list("counters", heap.announce())
}

/// Returns the time from the first start to the last end, and the sum of CPU times.
fn whole_times(spans: &[Span]) -> (u64, Option<u64>) {
    let start = spans.iter().map(|span| span.start).min().unwrap_or(0);
    let end = spans.iter().map(|span| span.end).max().unwrap_or(0);
    (end - start, spans.iter().map(|span| span.cpu).sum())
}

fn times(entry: Object, iterations: u64, wall: u64, cpu: Option<u64>) -> Object {
    let entry = entry.integer("iterations", iterations).integer("time.wall", wall);
    if let Some(cpu) = cpu { entry.integer("time.cpu", cpu) } else { entry }
}

fn span_object(iterations: u64, span: &Span) -> Object {
    times(Object::default(), iterations, span.end - span.start, span.cpu)
}

fn thread_object(iterations: u64, span: &Span) -> Object {
    let object = span_object(iterations, span);
    if let Some(waited) = span.waited { object.integer("waited", waited) } else { object }
}

fn whole_entry(batch: &Batch, measured: &Measured, iterations: u64) -> Object {
    let (wall, cpu) = whole_times(&measured.spans);
    let kind = if batch.kind == Kind::Case { "c" } else { "t" };
    let entry = Object::default().integer("id", batch.id as u64).text("kind", kind);
    let mut entry = times(entry, iterations, wall, cpu);
    if let (1, Some(thread)) = (measured.spans.len(), clock::own_thread()) {
        entry = entry.integer("thread", thread);
    }
    heap::tell(entry, &measured.before, &measured.after)
}
