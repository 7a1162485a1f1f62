//! Searches for leaks: scripted readings, and real programs whose growth is known by construction.

use crate::programs::skip;
use crate::support::{Place, at};
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const SIZES: [u64; 6] = [1000, 2000, 4000, 8000, 16_000, 32_000];

fn leaks(place: &Place, of: &[(u64, Value)], words: &[&str]) -> crate::support::Answer {
    let arms: serde_json::Map<String, Value> =
        of.iter().map(|(n, passes)| (format!("./prog {n}"), passes.clone())).collect();
    place.write("leak.json", json!({"arms": arms}).to_string());
    let all = ["inspect", "leak", "--scripted", "leak.json", "--sizes", "1000,2000,4000,8k,16k,32k"];
    place.run(all.iter().chain(words).chain(&["--", "./prog", "{n}"]))
}

fn heap_of(live: impl Fn(u64) -> u64) -> Vec<(u64, Value)> {
    let passes = |n| {
        let readings = json!({"heap.live": live(n), "gc.count": 40, "gc.major": 6});
        let resident = json!({"memory.peak": 30_000_000});
        json!({"counting": [{ "readings": readings }], "memory": [{ "readings": resident }]})
    };
    SIZES.map(|n| (n, passes(n))).to_vec()
}

#[test]
fn a_heap_that_grows_with_the_work_is_a_leak() {
    let place = Place::new();
    assert_snapshot!(leaks(&place, &heap_of(|n| 50_000 + 40 * n), &["--check"]).exchange(), @r"
    exit 1
    --- stdout
    ‘./prog {n}’
    heap.live: the most that is alive after collections of the whole heap, by script

        size         live
       1,000     90,000 B  ▇▇▇
       2,000    130,000 B  ▇▇▇▇
       4,000    210,000 B  ▇▇▇▇▇▇
       8,000    370,000 B  ▇▇▇▇▇▇▇▇▇▇▇
      16,000    690,000 B  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
      32,000  1,330,000 B  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇

    grows with the work: 40 B are kept for each unit of work. That is a leak, unless the program is
    meant to hold all of its work at once.
    ");
}

#[test]
fn a_sentence_uses_the_whole_width_of_the_terminal() {
    let place = Place::new();
    leaks(&place, &heap_of(|n| 50_000 + 40 * n), &[]);
    let words = "inspect leak --scripted leak.json --sizes 1k,2k,4k,8k -- ./prog {n}".split(' ');
    let answer = place.finish(place.command(words).env("COLUMNS", "80"));
    assert!(answer.stdout.contains("That is a leak, unless\nthe program"), "{}", answer.exchange());
}

#[test]
fn a_heap_of_constant_size_is_no_leak() {
    let place = Place::new();
    assert_snapshot!(leaks(&place, &heap_of(|n| 50_000 + n % 7), &["--check"]).exchange(), @r"
    exit 0
    --- stdout
    ‘./prog {n}’
    heap.live: the most that is alive after collections of the whole heap, by script

        size      live
       1,000  50,006 B  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
       2,000  50,005 B  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
       4,000  50,003 B  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
       8,000  50,006 B  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
      16,000  50,005 B  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
      32,000  50,003 B  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇

    constant: no more than 0.000167 B for each unit of work at 99 %. No leak.
    ! Memory that is outside the heap was looked for in memory.peak, where growth of less than 1 MiB
      over all sizes is not seen: up to 33.8 B for each unit of work. Larger sizes show smaller growth.
    ");
    let wandering = heap_of(|n| if n == 2000 { 200_000 } else { 50_000 });
    assert_eq!(leaks(&place, &wandering, &["--check"]).code, 3);
    let little = heap_of(|n| 50_000 + n / 2);
    assert_eq!(
        leaks(&place, &little, &["--check"]).code,
        1,
        "half a byte for each unit is a leak where it is exact"
    );
}

/// The runtime's heap stays the same, and native code keeps 104 bytes in each step; or malloc's live memory stays the
/// same, and the program maps 82 bytes in each step.
#[test]
fn memory_that_the_figure_does_not_contain_is_not_called_no_leak() {
    let native =
        |n| json!({"counting": [{"readings": {"heap.live": 50_000, "malloc.live": 30_000 + 104 * n}}]});
    let mapped = |n| {
        let counting = json!([{"readings": {"malloc.live": 1000, "malloc.peak": 2000}}]);
        json!({"counting": counting, "memory": [{"readings": {"memory.peak": 1_100_000 + 82 * n}}]})
    };
    let of = [
        (SIZES.map(|n| (n, native(n))), "malloc.live does, by about 104 B"),
        (SIZES.map(|n| (n, mapped(n))), "memory.peak does, by about 82 B"),
    ];
    for (arms, growth) in of {
        let place = Place::new();
        let answer = leaks(&place, &arms, &["--check"]);
        assert_eq!(answer.code, 3, "{}", answer.exchange());
        assert!(answer.stdout.contains(growth), "{}", answer.exchange());
        let page = place.run(["report", "--export", "leak.md"]);
        assert_eq!(page.code, 0, "{}", page.exchange());
        assert!(place.read("leak.md").contains(growth), "{}", place.read("leak.md"));
    }
}

/// Of 20 bytes that a program maps in each step, 32,000 steps make less than the kernel's error.
#[test]
fn a_search_says_how_much_it_would_not_have_seen() {
    let mapped = |n| {
        let counting = json!([{"readings": {"malloc.live": 1000, "malloc.peak": 2000}}]);
        json!({"counting": counting, "memory": [{"readings": {"memory.peak": 1_100_000 + 20 * n}}]})
    };
    let place = Place::new();
    let answer = leaks(&place, &SIZES.map(|n| (n, mapped(n))), &["--check"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let unseen = "not seen: up to 33.8 B for each unit of work";
    assert!(answer.unwrapped().contains(unseen), "{}", answer.exchange());
    let page = place.run(["report", "--export", "leak.md"]);
    assert_eq!(page.code, 0, "{}", page.exchange());
    assert!(place.read("leak.md").contains(unseen), "{}", place.read("leak.md"));
    let enough = leaks(&place, &SIZES.map(|n| (n, mapped(n))), &["--smallest", "40"]);
    assert!(!enough.unwrapped().contains("not seen"), "{}", enough.exchange());
}

/// Of 83 bytes that a program keeps in each step, only 1.4 are in the heap.
#[test]
fn memory_beside_a_heap_that_grows_is_named() {
    let place = Place::new();
    let passes = |n: u64| {
        let heap = json!([{"readings": {"heap.live": 1_200_000 + n * 14 / 10}}]);
        json!({"counting": heap, "memory": [{"readings": {"memory.peak": 30_000_000 + 83 * n}}]})
    };
    let answer = leaks(&place, &SIZES.map(|n| (n, passes(n))), &["--check"]);
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    assert!(answer.stdout.contains("grows with the work: 1.4"), "{}", answer.exchange());
    assert!(answer.stdout.contains("! memory.peak grows by about 83 B"), "{}", answer.exchange());
    let page = place.run(["report", "--export", "leak.md"]);
    assert_eq!(page.code, 0, "{}", page.exchange());
    assert!(place.read("leak.md").contains("Memory.peak grows by about 83 B"), "{}", place.read("leak.md"));
}

/// In each four thousand steps the program keeps a map of 327,680 bytes, whose object in Python's heap is small.
#[test]
fn memory_that_a_python_program_maps_is_not_called_no_leak() {
    let python = "/usr/bin/python3";
    if !Path::new(python).exists() {
        return;
    }
    let place = Place::new();
    place.write(
        "maps.py",
        "import mmap, sys\n\
         maps = [mmap.mmap(-1, 327680) for _ in range(int(sys.argv[1]) // 4000)]\n\
         for one in maps: one.write(b'x' * 327680)\n",
    );
    let sizes = ["inspect", "leak", "--check", "--sizes", "8k,16k,32k,64k,128k,256k", "-r", "1", "--"];
    let answer = place.run(sizes.iter().chain(&[python, "maps.py", "{size}"]));
    assert_eq!(answer.code, 3, "{}", answer.exchange());
    let growth = "but memory.peak does, by about 8";
    assert!(answer.stdout.contains(growth), "{}", answer.exchange());
    let page = place.run(["report", "--export", "leak.md"]);
    assert_eq!(page.code, 0, "{}", page.exchange());
    assert!(place.read("leak.md").contains(growth), "{}", place.read("leak.md"));
}

/// Keeps 64 KiB outside of the heap in each 819 steps, or nothing, and drops an array in each step.
const OUTSIDE: &str = "
public class Outside {
    static Object latest;
    public static void main(String[] words) throws Exception {
        java.lang.reflect.Field field = Class.forName(\"sun.misc.Unsafe\").getDeclaredField(\"theUnsafe\");
        field.setAccessible(true);
        sun.misc.Unsafe memory = (sun.misc.Unsafe) field.get(null);
        for (int i = 1; i <= Integer.parseInt(words[1]); i++) {
            latest = new byte[84];
            if (i % 819 == 0 && words[0].equals(\"keep\"))
                memory.setMemory(memory.allocateMemory(65536), 65536, (byte) 1);
        }
    }
}
";

/// The live heap does not grow, and without limits on the collector, garbage would make the resident size grow too.
#[test]
fn memory_outside_the_heap_of_a_java_program_is_not_called_no_leak() {
    let place = Place::new();
    let source = place.write("Outside.java", OUTSIDE);
    if !place.compile_java(&[source]) {
        return;
    }
    let sizes = ["inspect", "leak", "--check", "--sizes", "8k,16k,32k,64k,128k", "-r", "1", "--"];
    for (collector, mode, code) in [("-XX:+UseShenandoahGC", "keep", 3), ("-XX:+UseZGC", "drop", 0)] {
        let words = ["java", "-Xmx128m", collector, "-cp", ".", "Outside", mode, "{n}"];
        let answer = place.run(sizes.iter().chain(&words));
        assert_eq!(answer.code, code, "{collector}: {}", answer.exchange());
        let said = answer.stdout.contains("but memory.peak does");
        assert_eq!(said, code == 3, "{collector}: {}", answer.exchange());
    }
}

/// Guile does not count the memory that it maps by a function of the C library.
#[test]
fn memory_that_a_guile_program_maps_is_not_called_no_leak() {
    let guile = "/usr/bin/guile";
    if !Path::new(guile).exists() {
        return skip("guile is not installed");
    }
    let place = Place::new();
    place.write(
        "maps.scm",
        "(use-modules (system foreign))
         (define (c name types) (pointer->procedure '* (dynamic-func name (dynamic-link)) types))
         (define mmap (c \"mmap\" (list '* size_t int int int long)))
         (define memset (c \"memset\" (list '* int size_t)))
         (let loop ((i (quotient (string->number (cadr (command-line))) 819)))
           (when (> i 0) (memset (mmap %null-pointer 65536 3 34 -1 0) 1 65536) (loop (- i 1))))",
    );
    let sizes = ["inspect", "leak", "--check", "--sizes", "8k,16k,32k,64k,128k", "-r", "1", "--"];
    let answer = place.run(sizes.iter().chain(&[guile, "--no-auto-compile", "maps.scm", "{n}"]));
    assert_eq!(answer.code, 3, "{}", answer.exchange());
    let growth = "but memory.peak does, by about";
    assert!(answer.stdout.contains(growth), "{}", answer.exchange());
    let page = place.run(["report", "--export", "leak.md"]);
    assert!(place.read("leak.md").contains(growth), "{}", page.exchange());
}

#[test]
fn each_figure_of_a_search_for_leaks_is_stored_with_its_own_instrument() {
    let guile = "/usr/bin/guile";
    if !Path::new(guile).exists() {
        return;
    }
    let place = Place::new();
    // It allocates nothing: garbage may make memory.peak grow where collections come late, and malloc.live is not read then.
    place.write(
        "loop.scm",
        "(let loop ((i (string->number (cadr (command-line))))) (if (> i 0) (loop (- i 1))))\n",
    );
    let sizes = ["inspect", "leak", "--sizes", "10k,20k,40k,80k", "-r", "1", "--"];
    let words = [guile, "--no-auto-compile", "loop.scm", "{size}"];
    let answer = place.run(sizes.iter().chain(&words));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let stored = place.run(["show", "--json"]).json();
    let source = |metric: &str| at(&stored, &format!("/arms/0/metrics/{metric}/source")).clone();
    assert_eq!(source("heap.live"), "guile");
    assert_eq!(source("malloc.live"), "preload counter");
}

#[test]
fn a_search_for_leaks_ends_at_its_budget_with_what_it_knows() {
    let place = Place::new();
    place.write("slow.sh", "#!/bin/sh\n[ \"$1\" -ge 8000 ] && sleep 600\nexec true\n");
    let words = [
        "--budget",
        "5s",
        "-r",
        "1",
        "--sizes",
        "1000,2000,4000,8000",
        "--json",
        "--",
        "sh",
        "slow.sh",
        "{n}",
    ];
    let answer = place.run(["inspect", "leak"].iter().chain(&words));
    let view = answer.json();
    assert_eq!(view["left_out"]["sizes"], json!(["8000"]), "{}", answer.exchange());
    assert_eq!(view["verdict"], "unknown", "{}", answer.exchange());
    assert_eq!(view["runs"].as_array().map(Vec::len), Some(3));
}

#[test]
fn without_a_runtime_the_allocator_is_used_and_that_is_reported() {
    let place = Place::new();
    let passes = |n: u64| {
        let none = json!({"heap.live": "no language runtime was recognised"});
        let readings = json!({"malloc.live": 1000 + 16 * n, "malloc.peak": 2000 + 16 * n});
        json!({"counting": [{"readings": readings, "absent": none}]})
    };
    let arms = SIZES.map(|n| (n, passes(n)));
    assert_snapshot!(leaks(&place, &arms, &[]).stdout, @r"
    ‘./prog {n}’
    malloc.live: the bytes of malloc that are left as the program ends, by script
    heap.live: absent, because no language runtime was recognised

        size       live
       1,000   17,000 B  ▇
       2,000   33,000 B  ▇▇▇
       4,000   65,000 B  ▇▇▇▇▇
       8,000  129,000 B  ▇▇▇▇▇▇▇▇▇▇
      16,000  257,000 B  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
      32,000  513,000 B  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇

    grows with the work: 16 B are kept for each unit of work. That is a leak, unless the program is
    meant to hold all of its work at once.
    ");
    let view = leaks(&place, &arms, &["--json"]).json();
    assert_eq!(at(&view, "/verdict"), "grows");
    assert_eq!(at(&view, "/passed_over/0/metric"), "heap.live");
}

#[test]
fn searches_for_leaks_that_can_have_no_verdict_are_refused() {
    let stderr_of = |words: &[&str]| Place::new().run(["inspect", "leak"].iter().chain(words)).stderr;
    assert_snapshot!(stderr_of(&["--sizes", "1,2,8", "--", "true"]), @r"error: the command has no {size}: write it where the program takes the size of its work, as in -- ./prog {size}");
    assert_snapshot!(stderr_of(&["--sizes", "1,2,4", "--", "true", "{size}"]), @r"error: at least four sizes are needed, the largest at least four times the smallest, such as --sizes 1000,2000,4000,8000,16000");
    assert_snapshot!(stderr_of(&["--sizes", "1,2,4,8", "--metric", "time.cpu", "--", "true", "{n}"]), @r"error: ‘time.cpu’ does not show a leak: use heap.live, malloc.live, memory.peak, malloc.peak or heap.live_max");
}

const KEEPS: &str = r#"
#include <stdlib.h>
int main(int argc, char **argv) {
    long n = atol(argv[2]);
    for (long i = 0; i < n; i++) {
        char *volatile block = malloc(100);
        block[0] = 1;
        if (argv[1][0] != 'k') free(block);
    }
    return 0;
}
"#;

fn verdict(place: &Place, words: &[&str]) -> Value {
    let answer = place.run(["inspect", "leak", "--json"].iter().chain(words));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    answer.json()
}

#[test]
fn a_real_program_that_keeps_what_it_allocates_leaks() {
    let place = Place::new();
    place.compile("prog", KEEPS, &[]);
    let sizes = ["--sizes", "1000,2000,4000,8000", "--", "./prog"];
    let keeps = verdict(&place, &[&sizes[..], &["keep", "{size}"]].concat());
    assert_eq!((&keeps["verdict"], &keeps["metric"]), (&json!("grows"), &json!("malloc.live")), "{keeps:#}");
    let each = keeps["bytes_per_unit"].as_f64().expect("bytes");
    assert!((100.0..120.0).contains(&each), "{each}");
    assert_eq!(keeps["interval"], json!([104.0, 104.0]), "{keeps:#}");
    let frees = verdict(&place, &[&sizes[..], &["free", "{n}"]].concat());
    assert_eq!(frees["verdict"], "constant", "{frees:#}");
}

#[test]
fn growth_of_a_program_whose_allocator_cannot_be_seen_needs_no_collections() {
    let place = Place::new();
    place.compile("prog", KEEPS, &["-static"]);
    let sizes = ["--sizes", "50k,100k,200k,400k,800k", "--", "./prog"];
    let keeps = verdict(&place, &[&sizes[..], &["keep", "{size}"]].concat());
    assert_eq!((&keeps["verdict"], &keeps["metric"]), (&json!("grows"), &json!("memory.peak")), "{keeps:#}");
}

/// A Haskell program that keeps every number it has seen (`keep`), or only a short list.
const HASKELL: &str = "
import Control.Monad
import Data.IORef
import System.Environment
main :: IO ()
main = do
  [mode, n] <- getArgs
  kept <- newIORef ([] :: [Int])
  forM_ [1 .. read n] $ \\i ->
    if mode == \"keep\" then modifyIORef' kept (i :) else writeIORef kept [i, sum [i .. i + 50]]
  numbers <- readIORef kept
  print (sum numbers)
";

/// Compiles [`HASKELL`]. Returns false if there is no compiler.
pub fn haskell(place: &Place, name: &str, flags: &[&str]) -> bool {
    let source = place.write("Keeps.hs", HASKELL);
    let objects = place.file(&format!("objects-{name}"));
    let mut ghc = Command::new("ghc");
    ghc.args(["-v0", "-O1", "-outputdir"])
        .arg(objects)
        .arg("-o")
        .arg(place.file(name))
        .args(flags)
        .arg(source);
    match ghc.output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            true
        }
        Err(_) => {
            skip("ghc is not installed");
            false
        }
    }
}

#[test]
fn a_haskell_program_that_keeps_what_it_allocates_leaks() {
    let place = Place::new();
    if !haskell(&place, "prog", &[]) {
        return;
    }
    let sizes = ["--sizes", "50k,100k,200k,400k,800k", "--", "./prog"];
    let keeps = verdict(&place, &[&sizes[..], &["keep", "{size}"]].concat());
    assert_eq!((&keeps["verdict"], &keeps["metric"]), (&json!("grows"), &json!("heap.live")), "{keeps:#}");
    let each = keeps["bytes_per_unit"].as_f64().expect("bytes");
    assert!((20.0..60.0).contains(&each), "a cell of a list of numbers takes 40 bytes: {each}");
    let drops = verdict(&place, &[&sizes[..], &["drop", "{n}"]].concat());
    assert_eq!(drops["verdict"], "constant", "{drops:#}");
}

/// A Java program that keeps every block, or none.
const JAVA: &str = "
public class Keeps {
    static final java.util.List<byte[]> kept = new java.util.ArrayList<>();
    static byte[] latest;
    public static void main(String[] words) {
        for (int i = 0; i < Integer.parseInt(words[1]); i++) {
            latest = new byte[84];
            if (words[0].equals(\"keep\")) kept.add(latest);
        }
    }
}
";

#[test]
fn a_collector_that_counts_whole_regions_hides_no_leak() {
    let place = Place::new();
    let source = place.write("Keeps.java", JAVA);
    if !place.compile_java(&[source]) {
        return;
    }
    // The regions of this collector have 2 MiB, and the largest program keeps 3.7 MB.
    let sizes = ["--sizes", "1k,2k,4k,8k,16k,32k", "-r", "1", "--"];
    let program = ["java", "-Xmx128m", "-XX:+UseZGC", "-cp", ".", "Keeps", "keep", "{n}"];
    let keeps = verdict(&place, &[&sizes[..], &program].concat());
    assert_eq!((&keeps["verdict"], &keeps["metric"]), (&json!("grows"), &json!("heap.live")), "{keeps:#}");
    let each = keeps["bytes_per_unit"].as_f64().expect("bytes");
    assert!(
        (100.0..130.0).contains(&each),
        "a block takes 100 bytes, and its place in the list 4 to 8: {each}"
    );
}

/// The objects of these runtimes are not in malloc's memory, although the runtimes themselves report nothing.
#[test]
fn objects_of_a_runtime_that_reports_nothing_are_not_looked_for_in_malloc() {
    let place = Place::new();
    place.write(
        "keep.ss",
        "(display (length (iota (string->number (car (command-line-arguments)))))) (exit)\n",
    );
    let erlang = "io:format(\"~p~n\", [length(lists:seq(1, {n}))]), halt().";
    let programs: [&[&str]; 2] =
        [&["erl", "-noshell", "-eval", erlang], &["chezscheme", "--script", "keep.ss", "{n}"]];
    for words in programs {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&folders).any(|folder| folder.join(words[0]).exists()) {
            skip(&format!("{} is not installed", words[0]));
            continue;
        }
        let sizes = ["-r", "1", "--sizes", "1k,2k,4k,8k", "--"];
        let found = verdict(&place, &[&sizes[..], words].concat());
        assert_eq!(found["metric"], "memory.peak", "{found:#}");
    }
}

/// Its collector runs only after 50 MB.
#[test]
fn memory_that_was_never_collected_is_not_called_a_leak() {
    let place = Place::new();
    place.write(
        "drops.lisp",
        "(defvar *last* nil)
         (dotimes (i (parse-integer (car (last sb-ext:*posix-argv*)))) (setf *last* (make-array 10)))",
    );
    let words = [
        "inspect",
        "leak",
        "--sizes",
        "20k,40k,80k,160k,320k",
        "--",
        "sbcl",
        "--script",
        "drops.lisp",
        "{n}",
    ];
    let answer = place.run(words);
    if answer.stderr.contains("sbcl") {
        return skip("sbcl is not installed");
    }
    assert!(answer.stdout.contains("collected less than twice"), "{}", answer.exchange());
    let page = place.run(["report", "--export", "leak.md"]);
    assert_eq!(page.code, 0, "{}", page.exchange());
    assert!(place.read("leak.md").contains("collected less than twice"), "{}", place.read("leak.md"));
}
