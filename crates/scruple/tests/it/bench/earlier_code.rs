//! Earlier runs of suites whose code is not in the file of the program count if the code that was loaded is the same.

use crate::programs::skip;
use crate::support::{Answer, Place};
use std::path::PathBuf;
use std::process::Command;

/// A suite in a test's folder, and the command that runs it.
struct Suite {
    place: Place,
    words: Vec<String>,
}

impl Suite {
    fn new(place: Place, words: &[&str]) -> Suite {
        Suite { place, words: words.iter().map(|word| (*word).to_owned()).collect() }
    }

    /// Runs the suite. Returns the answer and the number of earlier runs that were used for its case.
    fn weigh(&self) -> (Answer, usize) {
        let options = ["bench", "--quick", "--time-only", "--processes", "3", "--blocks", "6", "--"];
        let words = options.iter().map(|word| (*word).to_owned()).chain(self.words.iter().cloned());
        let answer = self.place.run(words);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        let store = rusqlite::Connection::open(self.place.file("store.db")).expect("the store");
        let newest = "SELECT readings FROM sample WHERE metric = 'batch.net.earlier' \
                      AND run_id = (SELECT id FROM run ORDER BY started DESC, id DESC LIMIT 1)";
        let mut query = store.prepare(newest).expect("a query");
        let found = query.query_map([], |row| row.get::<_, String>(0)).expect("readings");
        let nets = found
            .map(|text| serde_json::from_str::<Vec<f64>>(&text.expect("a text")).expect("numbers").len());
        let used = nets.sum();
        (answer, used)
    }

    /// Runs the suite again without and with a change, which `edit` makes.
    fn expect_use_until(&self, edit: impl FnOnce(&Place)) {
        let (_, first) = self.weigh();
        assert_eq!(first, 0, "nothing is known of earlier runs");
        let (answer, second) = self.weigh();
        assert_eq!(second, 1, "the code is the same: {}", answer.exchange());
        edit(&self.place);
        let (answer, third) = self.weigh();
        assert_eq!(third, 0, "the code is another one: {}", answer.exchange());
        let (answer, fourth) = self.weigh();
        assert_eq!(fourth, 1, "the code is that of the third run: {}", answer.exchange());
        assert!(!answer.stdout.contains("earlier runs are not used"), "{}", answer.exchange());
    }

    /// Runs the suite twice, and expects that the report says why the first run does not count.
    fn expect_no_use(&self, why: &str) {
        self.weigh();
        let (answer, used) = self.weigh();
        assert_eq!(used, 0, "{}", answer.exchange());
        let text = format!("earlier runs are not used, because it is unknown which code was timed: {why}");
        assert!(answer.unwrapped().to_lowercase().contains(&text.to_lowercase()), "{}", answer.exchange());
    }
}

fn sdk(file: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../sdk", file].iter().collect()
}

/// A place with this file of an SDK. `None` if the program that runs it is not installed.
fn place_with(file: &str, program: &str) -> Option<Place> {
    if Command::new(program).arg("--version").output().is_err() {
        skip(&format!("{program} is not installed"));
        return None;
    }
    let place = Place::new();
    let name = file.rsplit('/').next().expect("a name");
    std::fs::copy(sdk(file), place.file(name)).expect("a copy");
    Some(place)
}

#[test]
fn python() {
    let Some(place) = place_with("python/scruple_bench.py", "python3") else { return };
    let suite = "
from scruple_bench import bench, main

@bench('sum')
def total():
    import lazily
    return lazily.total(10)

main()
";
    place.write("suite.py", suite);
    place.write("lazily.py", "def total(n): return sum(range(n))");
    Suite::new(place, &["python3", "suite.py"]).expect_use_until(|place| {
        place.write("lazily.py", "def total(n): return sum(range(n - 1))");
    });
}

#[test]
fn python_that_executes_a_text() {
    let Some(place) = place_with("python/scruple_bench.py", "python3") else { return };
    let suite = "
from scruple_bench import bench, main
made = {}
exec(open('text').read(), made)
bench('sum')(made['total'])
main()
";
    place.write("suite.py", suite);
    place.write("text", "def total(): return sum(range(10))");
    Suite::new(place, &["python3", "suite.py"]).expect_use_until(|place| {
        place.write("text", "def total(): return sum(range(11))");
    });
}

#[test]
fn javascript() {
    let Some(place) = place_with("js/scruple.mjs", "node") else { return };
    let suite = "
import { bench, main } from './scruple.mjs'
import { createRequire } from 'node:module'
const { limit } = createRequire(import.meta.url)('./limit.cjs')
bench('sum', x => x + limit, { arg: 1, setup: async () => (await import('./lazily.mjs')).arg })
main()
";
    place.write("suite.mjs", suite);
    place.write("lazily.mjs", "export const arg = 1");
    place.write("limit.cjs", "module.exports = { limit: 10 }");
    let suite = Suite::new(place, &["node", "suite.mjs"]);
    suite.expect_use_until(|place| {
        place.write("lazily.mjs", "export const arg = 2");
    });
    suite.place.write("limit.cjs", "module.exports = { limit: 11 }");
    assert_eq!(suite.weigh().1, 0);
}

#[test]
fn javascript_that_evaluates_a_text() {
    let Some(place) = place_with("js/scruple.mjs", "node") else { return };
    let suite = "
import { bench, main } from './scruple.mjs'
import { readFileSync } from 'node:fs'
bench('sum', new Function('x', readFileSync('text', 'utf8')), { arg: 1 })
main()
";
    place.write("suite.mjs", suite);
    place.write("text", "return x + 1");
    Suite::new(place, &["node", "suite.mjs"]).expect_use_until(|place| {
        place.write("text", "return x + 2");
    });
}

#[test]
fn javascript_with_workers() {
    let Some(place) = place_with("js/scruple.mjs", "node") else { return };
    let suite = "
import { bench, main } from './scruple.mjs'
import { Worker } from 'node:worker_threads'
bench('sum', x => x + 1, { setup: () => { new Worker('', { eval: true }).unref(); return 1 } })
main()
";
    place.write("suite.mjs", suite);
    Suite::new(place, &["node", "suite.mjs"]).expect_no_use("the program has started worker threads");
}

const JAVA: &str = "
public class Suite {
    public static void main(String[] words) {
        ScrupleBench bench = new ScrupleBench();
        bench.ofInt(\"sum\", 1, x -> Other.sum(x));
        bench.run();
    }
}
";

fn java_place(more: &[(&str, &str)]) -> Option<Place> {
    let place = Place::new();
    let names = ["ScrupleBench", "ScrupleLines", "ScrupleLoops", "ScrupleCode"];
    let files = names.iter().map(|name| sdk(&format!("java/{name}.java")));
    let own = more.iter().map(|(name, text)| place.write(name, text));
    let sources: Vec<PathBuf> = files.chain(own).collect();
    place.compile_java(&sources).then_some(place)
}

#[test]
fn java() {
    let other = |n: u32| format!("public class Other {{ static int sum(int x) {{ return x + {n}; }} }}");
    let Some(place) = java_place(&[("Suite.java", JAVA), ("Other.java", &other(1))]) else { return };
    Suite::new(place, &["java", "-cp", ".", "Suite"]).expect_use_until(|place| {
        let source = place.write("Other.java", other(2));
        assert!(place.compile_java(&[source]));
    });
}

#[test]
fn java_with_a_loader_of_its_own() {
    let suite = "
public class Suite {
    public static void main(String[] words) throws Exception {
        java.net.URL[] here = {new java.io.File(\"plugin/\").toURI().toURL()};
        Class<?> plugin = new java.net.URLClassLoader(here).loadClass(\"Plugin\");
        Object made = plugin.getDeclaredConstructor().newInstance();
        ScrupleBench bench = new ScrupleBench();
        bench.ofInt(\"sum\", 1, (java.util.function.IntUnaryOperator) made);
        bench.run();
    }
}
";
    let plugin = "
public class Plugin implements java.util.function.IntUnaryOperator {
    public int applyAsInt(int x) { return x + 1; }
}
";
    let Some(place) = java_place(&[("Suite.java", suite), ("Plugin.java", plugin)]) else { return };
    std::fs::create_dir(place.file("plugin")).expect("a folder");
    std::fs::rename(place.file("Plugin.class"), place.file("plugin/Plugin.class")).expect("a file");
    let suite = Suite::new(place, &["java", "-cp", ".", "Suite"]);
    suite.expect_no_use("classes were loaded by java.net.URLClassLoader");
}

#[test]
fn guile() {
    let Some(place) = place_with("guile/scruple.scm", "guile") else { return };
    let suite = "
(use-modules (scruple))
(bench \"sum\" (n 10) ((@ (lazily) total) n))
(bench-main)
";
    place.write("suite.scm", suite);
    // Guile copies short procedures into the modules that use them, and does not notice if they change.
    let lazily = |n: u32| {
        let loop_of = format!("(define (total x) (if (zero? x) {n} (1+ (total (1- x)))))");
        format!("(define-module (lazily) #:export (total))\n{loop_of}")
    };
    place.write("lazily.scm", lazily(1));
    let suite = Suite::new(place, &["guile", "-L", ".", "suite.scm"]);
    // Guile compiles a program at its first run, for which it loads its compiler.
    suite.weigh();
    suite.place.write("store.db", "");
    suite.expect_use_until(|place| {
        place.write("lazily.scm", lazily(2));
        // This run compiles the file.
        let (answer, used) = suite.weigh();
        assert_eq!(used, 0, "{}", answer.exchange());
    });
}

#[test]
fn guile_that_interprets() {
    let Some(place) = place_with("guile/scruple.scm", "guile") else { return };
    let suite = "
(use-modules (scruple))
(primitive-load \"total.scm\")
(bench \"sum\" (n 10) (total n))
(bench-main)
";
    place.write("suite.scm", suite);
    place.write("total.scm", "(define (total n) (+ n 1))");
    let suite = Suite::new(place, &["guile", "-L", ".", "suite.scm"]);
    suite.weigh();
    suite.expect_no_use("total.scm is interpreted");
}

#[test]
fn code_that_changes_meanwhile_is_unknown() {
    let Some(place) = place_with("python/scruple_bench.py", "python3") else { return };
    let suite = "
from scruple_bench import bench, main
import os, other

@bench('sum')
def total():
    os.utime(other.__file__)
    return 1

main()
";
    place.write("suite.py", suite);
    place.write("other.py", "");
    let suite = Suite::new(place, &["python3", "suite.py"]);
    suite.weigh();
    let (answer, used) = suite.weigh();
    assert_eq!(used, 0, "{}", answer.exchange());
    let text = "other.py’ changed while it was measured, so figures may be of two programs";
    assert!(answer.unwrapped().contains(text), "{}", answer.exchange());
}
