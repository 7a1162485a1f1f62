//! `scruple explain` on programs that GHC compiled.

use crate::explain::fallback::{has_fallback, without_compiler};
use crate::explain::{adds_up, explain, first};
use crate::programs::{has_ghc_profiling, has_valgrind};
use crate::repository::Repository;
use crate::support::{Place, at};
use std::process::Command;

/// Source of a program with two functions that are not exported: `hash` hashes a word in `rounds` rounds, and `parse`
/// calls `hash` `times` times.
fn source(rounds: u32, times: u32) -> String {
    format!(
        "module Main (main) where\n\n\
         hash :: Int -> Int -> Int\n\
         hash start word = go ({rounds} :: Int) start\n  where\n    go 0 h = h\n    \
         go n h = go (n - 1) ((h * 31 + word) `mod` 16777619)\n{{-# NOINLINE hash #-}}\n\n\
         parse :: Int -> Int\n\
         parse word = times ({times} :: Int) word\n  where\n    times 0 h = h\n    \
         times n h = times (n - 1) (hash h word)\n{{-# NOINLINE parse #-}}\n\n\
         main :: IO ()\nmain = print (loop 5000 7 == (1 :: Int))\n  where\n    loop :: Int -> Int -> Int\n    \
         loop 0 sum' = sum'\n    loop n sum' = loop (n - 1) (sum' + parse n)\n"
    )
}

fn has_ghc() -> bool {
    has_valgrind()
        && Command::new("ghc").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Compiles `source` in a folder named `name`.
fn build(place: &Place, name: &str, source: &str, flags: &[&str]) {
    std::fs::create_dir(place.file(name)).expect("a folder");
    place.write(&format!("{name}/Main.hs"), source);
    let words = ["-v0", "-O1", "-rtsopts", "Main.hs", "-o", "app"];
    let status = Command::new("ghc").args(words).args(flags).current_dir(place.file(name)).status();
    assert!(status.is_ok_and(|status| status.success()), "ghc");
}

#[test]
fn local_functions_of_haskell_are_named_by_their_source_and_the_true_cause_stands_first() {
    if !has_ghc() {
        return;
    }
    let place = Place::new();
    build(&place, "one", &source(40, 1), &["-g1"]);
    build(&place, "two", &source(44, 1), &["-g1"]);
    build(&place, "six", &source(40, 3), &["-g1"]);
    let dearer = explain(&place, &["one/app", "two/app"]);
    adds_up(&dearer);
    let (function, kind, _) = first(&dearer);
    assert_eq!((function.as_str(), kind.as_str()), ("Main.hash", "own"), "{}", dearer.exchange());
    let often = explain(&place, &["one/app", "six/app"]);
    adds_up(&often);
    assert!(!often.stdout.contains("function at 0x0 "), "code of no function: {}", often.exchange());
    let (function, kind, _) = first(&often);
    assert_eq!((function.as_str(), kind.as_str()), ("Main.parse", "calls"), "{}", often.exchange());
    let page = often.json();
    assert_eq!(at(&page, "/explain/counts/0/rows/0/parts/0/callee"), "Main.hash", "{}", often.exchange());
    without_the_call_tree_none_is_named_by_the_symbol_before_it(&place);
    // A source that was changed after the build is not used to name functions.
    place.write("two/Main.hs", source(44, 1));
    let stale = explain(&place, &["two/app", "two/app"]);
    let remarks = at(&stale.json(), "/explain/remarks").to_string();
    assert!(remarks.contains("whose sources are there"), "{}", stale.exchange());
}

fn without_the_call_tree_none_is_named_by_the_symbol_before_it(place: &Place) {
    if !has_fallback() {
        return;
    }
    let answer = without_compiler(place, &["explain", "--json", "--no-time", "one/app", "two/app"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    adds_up(&answer);
    assert_eq!(first(&answer).0, "Main.hash", "{}", answer.exchange());
}

#[test]
fn without_debugging_information_only_the_module_of_local_functions_is_named() {
    if !has_ghc() {
        return;
    }
    let place = Place::new();
    build(&place, "one", &source(40, 1), &[]);
    build(&place, "two", &source(44, 1), &[]);
    let answer = explain(&place, &["one/app", "two/app"]);
    adds_up(&answer);
    assert_eq!(first(&answer).0, "Main.(local functions)", "{}", answer.exchange());
    assert!(at(&answer.json(), "/explain/remarks").to_string().contains("-g1"), "{}", answer.exchange());
}

#[test]
fn the_optimised_core_of_a_function_is_shown_where_ghc_wrote_it_down() {
    if !has_ghc() {
        return;
    }
    let place = Place::new();
    let flags = ["-g1", "-ddump-simpl", "-dsuppress-all", "-ddump-to-file"];
    build(&place, "one", &source(40, 1), &flags);
    build(&place, "two", &source(44, 1), &flags);
    let words = ["--lines", "one/app", "two/app"];
    let page = explain(&place, &words).json();
    let core = at(&page, "/explain/code/core").as_array().expect("lines of Core");
    let only = |mark: &str| {
        core.iter()
            .filter(|line| line["mark"] == mark)
            .map(|line| line["text"].to_string())
            .collect::<String>()
    };
    assert!(only("-").contains("40#") && only("+").contains("44#"), "{core:#?}");
    std::fs::remove_file(place.file("two/Main.dump-simpl")).expect("the Core");
    let lacking = place.run(["explain", "--no-time"].iter().chain(&words));
    assert!(lacking.stdout.contains("no Core of Main"), "{}", lacking.exchange());
}

#[test]
fn the_core_of_a_function_that_only_one_program_has_is_found() {
    if !has_ghc() {
        return;
    }
    let place = Place::new();
    // Reversed, the elements are no longer consumed where they are made, and the function gets another form.
    let source = |elements: &str| {
        format!(
            "module Main where\nimport Data.List (foldl')\nimport qualified Data.Map.Strict as M\n\
             data P = P !Int !Int deriving Show\n\
             build :: Int -> M.Map Int P\n\
             build n = foldl' (\\m i -> M.insert (i * 7919 `mod` n) (P i (i + 1)) m) M.empty [1 .. n]\n\
             {{-# NOINLINE build #-}}\n\
             score :: M.Map Int P -> Int\n\
             score m = sum [a * b `mod` 17 | P a b <- {elements}, odd a]\n\
             {{-# NOINLINE score #-}}\n\
             main :: IO ()\nmain = print (score (build 20000))\n"
        )
    };
    let flags = ["-g1", "-ddump-simpl", "-dsuppress-all", "-ddump-to-file"];
    build(&place, "one", &source("M.elems m"), &flags);
    build(&place, "two", &source("reverse (M.elems m)"), &flags);
    let answer = explain(&place, &["--lines", "one/app", "two/app"]);
    adds_up(&answer);
    let page = answer.json();
    assert!(first(&answer).0.starts_with("Main."), "{}", answer.exchange());
    let core = at(&page, "/explain/code/core").as_array().expect("lines of Core");
    assert!(core.iter().any(|line| line["mark"] == "+"), "{}", answer.exchange());
}

#[test]
fn functions_of_haskell_at_two_revisions_are_named_by_the_source_of_each() {
    if !has_ghc() {
        return;
    }
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.write(".gitignore", "app\n*.o\n*.hi\n");
    repository.write("Main.hs", &source(40, 1));
    repository.commit("old");
    repository.write("Main.hs", &source(44, 1).replace("hash ::", "-- | Dearer.\nhash ::"));
    repository.commit("new");
    let build = "ghc -v0 -O1 -g1 -rtsopts Main.hs -o app";
    let words = ["--repo", "repo", "--build", build, "--artifact", "app", "HEAD~1", "HEAD", "--", "./app"];
    let answer = explain(&place, &words);
    adds_up(&answer);
    assert_eq!(first(&answer).0, "Main.hash", "{}", answer.exchange());
}

/// Source of a program whose `parse` conses `more` cells for each word.
fn consing(more: usize) -> String {
    let cells = "word : ".repeat(more);
    format!(
        "module Main (main) where\n\n\
         parse :: Int -> [Int] -> [Int]\nparse word done = {cells}done\n{{-# NOINLINE parse #-}}\n\n\
         main :: IO ()\nmain = print (loop 2000 0 == 0)\n  where\n    loop :: Int -> Int -> Int\n    \
         loop 0 all' = all'\n    loop n all' = loop (n - 1) (all' + length (parse n []))\n"
    )
}

/// The bytes that the runtime says it allocated.
fn allocated(place: &Place, program: &str) -> i64 {
    let output =
        Command::new(place.file(program)).args(["+RTS", "-t", "--machine-readable", "-RTS"]).output();
    let text = String::from_utf8(output.expect("a program").stderr).expect("text");
    let number = text.split_once("\"bytes allocated\", \"").and_then(|(_, rest)| rest.split('"').next());
    number.and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn allocations_of_haskell_are_reported_by_procedure_and_by_type_of_closure() {
    if !has_ghc() {
        return;
    }
    let place = Place::new();
    build(&place, "one", &consing(3), &["-g1"]);
    build(&place, "two", &consing(5), &["-g1"]);
    build(&place, "six", &consing(3), &["-g1", "-dynamic"]);
    build(&place, "ten", &consing(5), &["-g1", "-dynamic"]);
    for (a, b) in [("one/app", "two/app"), ("six/app", "ten/app")] {
        let answer = explain(&place, &[a, b]);
        adds_up(&answer);
        let (function, kind, _) = first(&answer);
        assert_eq!((function.as_str(), kind.as_str()), ("Main.parse", "own"), "{}", answer.exchange());
        let page = answer.json();
        let counts = at(&page, "/explain/counts").as_array().expect("counts");
        let bytes = counts.iter().find(|one| one["count"] == "bytes allocated").expect("bytes");
        let difference = bytes["difference"].as_f64().expect("a number");
        // Programs of another code begin with a few other words.
        let truth = (allocated(&place, b) - allocated(&place, a)) as f64;
        assert!(truth > 9e4 && (difference - truth).abs() <= 512.0, "{difference} for {truth}");
        assert!(bytes["rows"][0]["function"].to_string().contains("Main.parse"), "{}", answer.exchange());
        let types = at(&page, "/explain/closures").as_array().expect("types").clone();
        let cells = types.iter().find(|one| one["type"] == "ghc-prim:GHC.Types.:").expect("cells");
        let number = |which: usize| cells["closures"][which].as_f64().expect("a number");
        assert!((number(1) - number(0) - 4000.0).abs() < 10.0, "{types:?}");
        let size = cells["bytes"][0].as_f64().expect("a number");
        assert!((size - 24.0 * number(0)).abs() < 0.5, "{types:?}");
    }
}

#[test]
fn closures_of_programs_built_for_profiling_have_the_profilers_words() {
    let place = Place::new();
    if !has_valgrind() || !has_ghc_profiling(&place) {
        return;
    }
    let flags = ["-prof", "-fprof-auto"];
    build(&place, "one", &consing(3), &flags);
    build(&place, "two", &consing(5), &flags);
    let answer = explain(&place, &["one/app", "two/app"]);
    let page = answer.json();
    let types = at(&page, "/explain/closures").as_array().expect("types");
    let sizes = types.iter().map(|one| {
        let size = |which: usize| one["bytes"][which].as_f64().expect("a number");
        size(1) - size(0)
    });
    let truth = (allocated(&place, "two/app") - allocated(&place, "one/app")) as f64;
    let found: f64 = sizes.sum();
    assert!(truth > 1e5 && (found - truth).abs() <= 512.0, "{found} for {truth}: {types:#?}");
}
