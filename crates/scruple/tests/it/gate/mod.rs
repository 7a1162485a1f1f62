//! `scruple check`: what decides, its exit codes, and the files it writes.

mod jobs;
mod limits;
mod repositories;

use crate::fake::{fake, fake_line};
use crate::load::{script, window, windows};
use crate::repository::{BUILD, Repository, program};
use crate::scripted_readings::{Arm, arm, noisy_arm};
use crate::support::{Answer, Place, at};
use insta::assert_snapshot;
use std::path::{Path, PathBuf};

/// Runs `check run` on two scripted arms, `old` and `new`.
fn scripted(place: &Place, old: Arm, new: Arm, words: &[&str]) -> Answer {
    place.script(&[("old", old), ("new", new)]);
    let all =
        ["check", "run", "--scripted", "script.json", "--no-store", "-n", "old", "-n", "new", "-r", "26"];
    place.run(all.iter().chain(words).chain(&["true", "true new"]))
}

/// Runs `check` on the repository `repo`, quickly, with allocations as the only gate.
fn gate(place: &Place, words: &[&str]) -> Answer {
    let all = [&["check", "--repo", "repo", "--no-store", "-r", "15", "--gate", "malloc"], &BUILD[..], words];
    place.run([&all.concat()[..], &["--", "./app"]].concat())
}

fn bytes(arm: Arm, bytes: f64) -> Arm {
    arm.with("counting", "malloc.bytes", move |_| bytes)
}

#[test]
fn one_byte_more_fails_and_a_slower_time_only_informs() {
    let place = Place::new();
    let answer = scripted(&place, arm(1.0, 1), bytes(arm(1.5, 2), 4097.0), &["--export", "check.md"]);
    assert_snapshot!(answer.exchange(), @r#"
    exit 1
    --- stdout
    Gate exceeded: 1 regression, 2 not worse, 2 worse without deciding.

      regression          new  malloc bytes  4,096 B → 4,097 B  +0.02 % (+1 B)
      only shown: slower  new  cpu           4.00 ms → 6.00 ms  +50.0 % [+50.0, +50.1]
      only shown: slower  new  wall          5.13 ms → 7.70 ms  +50.0 % [+50.0, +50.1]

    These decide: malloc bytes, mallocs, malloc peak. All other figures are only shown.
    scripted · 20 timings of each side, interleaved · seed 1 · load 0.0 · kernel  · run scripted-1
    "#);
    assert_snapshot!(place.read("check.md"), @r#"
    <!-- scruple:check:default -->
    ### ▲ Gate exceeded: 1 regression, 2 not worse, 2 worse without deciding.

    | | subject | metric | before | after | change |
    |---|---|---|---:|---:|---:|
    | regression | `new` | malloc bytes | 4,096 B | 4,097 B | +0.02 % (+1 B) |

    <details><summary>5 that did not decide, or did not become worse</summary>

    | | subject | metric | before | after | change |
    |---|---|---|---:|---:|---:|
    | same | `new` | mallocs | 100 | 100 | ±0 |
    | same | `new` | malloc peak | 2,048 B | 2,048 B | ±0 |
    | only shown: slower | `new` | cpu | 4.00 ms | 6.00 ms | +50.0 % \[+50.0, +50.1\] |
    | only shown: slower | `new` | wall | 5.13 ms | 7.70 ms | +50.0 % \[+50.0, +50.1\] |
    | only shown: same within 20 % | `new` | peak memory | 1.50 MB | 1.50 MB | ±0 |

    </details>

    <details><summary>Where and how</summary>

    - These decide: malloc bytes, mallocs, malloc peak. All other figures are only shown.
    - scripted · 20 timings of each side, interleaved · seed 1 · load 0.0 · kernel  · run scripted-1

    </details>
    "#);
    let slower = scripted(&place, arm(1.0, 1), arm(1.5, 2), &["--json"]);
    assert_eq!(slower.code, 0, "{}", slower.exchange());
    let decides = at(&slower.json(), "/check/findings").as_array().expect("findings").clone();
    let of_time = decides.iter().find(|one| one["metric"] == "time.cpu").expect("a time");
    assert_eq!(
        (of_time["decides"].as_bool(), of_time["outcome"].as_str()),
        (Some(false), Some("regression"))
    );
}

#[test]
fn one_byte_more_is_reported_where_launches_are_slow() {
    let place = Place::new();
    // A quarter of the budget pays for two blocks of one second each, which are too few to distinguish two counts.
    let slow = |arm: Arm| {
        let long = |_: usize| 5e8;
        arm.with("timing", "time.wall", long).with("memory", "time.wall", long)
    };
    place.script(&[("old", slow(arm(1.0, 1))), ("new", slow(bytes(arm(1.0, 2), 4097.0)))]);
    let words = ["check", "run", "--scripted", "script.json", "--no-store", "-n", "old", "-n", "new"];
    let answer = place.run(words.iter().chain(&["--budget", "10s", "--json", "true", "true new"]));
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    let findings = at(&answer.json(), "/check/findings").as_array().expect("findings").clone();
    let found = findings.iter().find(|one| one["metric"] == "malloc.bytes").expect("a count");
    assert_eq!(found["outcome"], "regression", "{found:#}");
}

#[test]
fn a_count_that_varies_at_the_base_does_not_decide_and_is_named() {
    let place = Place::new();
    let vary = arm(1.0, 1)
        .launches("counting", 3)
        .with("counting", "malloc.bytes", |block| [4096.0, 5000.0, 4800.0][block % 3]);
    let answer = scripted(
        &place,
        vary,
        bytes(arm(1.0, 2), 9000.0),
        &["--export", "check.md", "--export", "check.json"],
    );
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let text = "Not deciding, because they vary from launch to launch: malloc bytes of ‘new’ (4,096 B to 5,000 B at the \
                reference); if --gate names them, they decide.";
    let stdout = answer.unwrapped();
    assert!(stdout.contains(text), "{}", answer.exchange());
    assert!(place.read("check.md").contains(text), "{}", place.read("check.md"));
    let json: serde_json::Value = serde_json::from_str(&place.read("check.json")).expect("JSON");
    let findings = at(&json, "/check/findings").as_array().cloned().unwrap_or_default();
    let found = findings.iter().find(|one| one["metric"] == "malloc.bytes").expect("the finding");
    assert_eq!((&found["decides"], &found["varies"]), (&false.into(), &serde_json::json!([4096.0, 5000.0])));
    let vary = arm(1.0, 1)
        .launches("counting", 3)
        .with("counting", "malloc.bytes", |block| [4096.0, 5000.0, 4800.0][block % 3]);
    let named = scripted(&place, vary, bytes(arm(1.0, 2), 9000.0), &["--gate", "malloc.bytes"]);
    assert_eq!(named.code, 1, "{}", named.exchange());
}

#[test]
fn a_time_that_is_named_decides() {
    let place = Place::new();
    let gate = |factor: f64| scripted(&place, arm(1.0, 1), arm(factor, 2), &["--gate", "time.cpu"]);
    assert_eq!([1.0, 1.03].map(|factor| gate(factor).code), [0, 1]);
    let vague = |arm: Arm| arm.with("timing", "time.cpu", |launch| 1e6 * (1.0 + (launch % 7) as f64));
    let answer = scripted(&place, vague(arm(1.0, 1)), arm(1.0, 2), &["--gate", "time.cpu"]);
    assert_eq!(answer.code, 3, "{}", answer.exchange());
}

#[test]
fn an_undecided_limit_is_neither_kept_nor_exceeded() {
    let place = Place::new();
    let gone = arm(1.0, 2).absent("counting", "malloc.bytes", "it is linked statically");
    let answer = scripted(&place, arm(1.0, 1), gone, &["--export", "check.xml"]);
    assert_eq!(answer.code, 3, "{}", answer.exchange());
    assert!(answer.stdout.contains("Gate can’t tell: 1 undecided"), "{}", answer.exchange());
    assert!(answer.stdout.contains("it is linked statically"), "{}", answer.exchange());
    assert!(place.read("check.xml").contains("errors=\"1\""), "{}", place.read("check.xml"));
    let nothing = scripted(&place, arm(1.0, 1), arm(1.0, 2), &["--gate", "gc.count"]);
    assert_eq!(nothing.code, 3, "{}", nothing.exchange());
    assert!(nothing.stdout.contains("no figure that decides could be read"), "{}", nothing.exchange());
}

#[test]
fn counts_that_decide_are_read_often_enough_even_beyond_the_budget() {
    let place = Place::new();
    let check = |new: Arm, more: &[&str]| {
        place.script(&[("old", arm(1.0, 1)), ("new", new)]);
        let words = ["check", "run", "--scripted", "script.json", "--no-store", "-n", "old", "-n", "new"];
        let answer =
            place.run(words.iter().chain(&["--budget", "1ms"]).chain(more).chain(&["true", "true new"]));
        (answer.code, answer.exchange())
    };
    let (code, text) = check(bytes(arm(1.0, 2), 4097.0), &[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("malloc bytes  4,096 B → 4,097 B"), "{text}");
    let (code, text) = check(arm(1.0, 2), &[]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = check(arm(1.0, 2), &["--gate", "time.cpu"]);
    assert_eq!(code, 3, "three blocks of times do not decide: {text}");
}

#[test]
fn the_budget_of_a_gate_contains_the_time_between_launches() {
    let place = Place::new();
    // Launches of a nanosecond never use up a budget. With these seeds, the metric that decides is not clear after any
    // number of blocks up to 100.
    let quick = |seed| noisy_arm(1.0, seed, 0.5).with("timing", "time.wall", |_| 1.0);
    place.script(&[("old", quick(3)), ("new", quick(4))]);
    let words = ["check", "run", "--scripted", "script.json", "--no-store", "-n", "old", "-n", "new"];
    let more = ["--gate", "time.cpu", "--budget", "1ms", "--margin", "0.1%", "true", "true new"];
    let answer = place.run(words.iter().chain(&more));
    assert_eq!(answer.code, 3, "{}", answer.exchange());
    let blocks = answer.stdout.split(" timings of each side").next().and_then(|head| head.rsplit(' ').next());
    let blocks: u32 = blocks.and_then(|text| text.parse().ok()).expect("a number of blocks");
    assert!(blocks < 320, "as many blocks as there may be: {}", answer.exchange());
}

#[test]
fn a_gate_of_times_goes_on_until_the_time_that_decides_is_clear() {
    let place = Place::new();
    let blocks = |gate: &str| {
        let noisy = |seed| {
            let noise = noisy_arm(1.0, seed, 0.2);
            noise.with("timing", "time.wall", |launch| 5e6 + launch as f64)
        };
        place.script(&[("old", noisy(1)), ("new", noisy(2))]);
        let words = ["check", "run", "--scripted", "script.json", "--no-store", "-n", "old", "-n", "new"];
        let answer = place.run(words.iter().chain(&["--gate", gate, "true", "true new"]));
        let head = answer.stdout.split(" timings of each side").next().unwrap_or_default();
        head.rsplit(' ').next().and_then(|text| text.parse::<u32>().ok()).expect("a number of blocks")
    };
    let (of_counts, of_times) = (blocks("malloc"), blocks("time.cpu"));
    assert!(of_counts < of_times, "wall time is clear after {of_counts}, cpu time not after {of_times}");
}

#[test]
fn every_case_of_a_large_suite_is_counted_where_counts_decide() {
    let place = Place::new();
    let old = fake_line(&place, &["--many", "120", r#"{"name":"zoo/ant","cost":5,"bytes":16}"#]);
    let new = fake(&place, &["--many", "120", r#"{"name":"zoo/ant","cost":5,"bytes":17}"#]);
    let words = ["check", "bench", "--no-store", "--count-only", "--budget", "1ms", "--gate", "alloc.bytes"];
    let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    words.extend(["--against".to_owned(), old, "--".to_owned()]);
    words.extend(new);
    let answer = place.run(words);
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    assert!(answer.stdout.contains("1 regression, 120 not worse"), "{}", answer.exchange());
}

#[test]
fn every_file_names_the_regression_and_nothing_of_a_name_is_markup() {
    let place = Place::new();
    let name = "a<b>|`c` --> @someone";
    place.script(&[("old", arm(1.0, 1)), (name, bytes(arm(1.0, 2), 5000.0))]);
    let files = ["check.md", "check.json", "check.xml", "check.sarif", "badge.svg"];
    let mut words =
        vec!["check", "run", "--scripted", "script.json", "--no-store", "--label", "a --> b", "-n", "old"];
    words.extend(["-n", name, "-r", "16", "true", "true new"]);
    files.iter().for_each(|file| words.extend(["--export", file]));
    let answer = place.run(&words);
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    let [markdown, json, xml, sarif, badge] = files.map(|file| place.read(file));
    assert!(
        markdown.starts_with("<!-- scruple:check:a_____b -->\n### ▲ Gate exceeded: 1 regression"),
        "{markdown}"
    );
    assert!(markdown.contains("| `a<b>\\|'c' --> @someone` |"), "{markdown}");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(at(&json, "/check/gate"), "exceeded");
    assert!(xml.contains("failures=\"1\"") && xml.contains("a&lt;b&gt;"), "{xml}");
    let sarif: serde_json::Value = serde_json::from_str(&sarif).expect("SARIF");
    assert_eq!(at(&sarif, "/version"), "2.1.0");
    assert_eq!(at(&sarif, "/runs/0/results").as_array().map(Vec::len), Some(0), "no line is known");
    assert!(badge.contains("performance: 1 regression"), "{badge}");
    for text in [&markdown, &xml, &badge, &answer.stdout] {
        assert!(!text.contains('\u{1b}'), "{text}");
    }
    let book = scripted(&place, arm(1.0, 1), arm(1.0, 2), &["--export", "gate.adoc"]);
    assert_eq!(book.code, 2, "{}", book.exchange());
    let known = "this verb writes .html, .md, .json, .xml, .sarif, .svg";
    assert!(book.stderr.contains(known), "{}", book.exchange());
}

#[test]
fn a_change_of_documents_builds_the_same_and_is_not_weighed() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1000]);
    repository.git(&["checkout", "--quiet", "-b", "topic"]);
    repository.write("README.md", "words");
    repository.commit("words");
    let answer = gate(&place, &["--export", "check.md"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let text = answer.unwrapped();
    assert!(
        text.contains("are the same, byte for byte, although ‘README.md’ differs."),
        "{}",
        answer.exchange()
    );
    let page = place.read("check.md");
    assert!(page.contains("### ✓ Gate kept without measuring: the builds of ‘main ("), "{page}");
    assert!(
        !page.contains("Where and how") && !page.contains("decides"),
        "nothing was to be decided: {page}"
    );
    // A limit in absolute units applies although both builds are the same.
    let limited = gate(&place, &["--limit", "malloc.bytes<10B"]);
    assert_eq!(limited.code, 1, "{}", limited.exchange());
    place.assert_no_processes();
}

#[test]
fn a_commit_that_costs_a_byte_more_fails_until_it_is_accepted() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1000]);
    repository.git(&["checkout", "--quiet", "-b", "topic"]);
    repository.commit_program("more", 10, 1001, "");
    repository.write("notes.txt", "not tracked");
    let limits = ["--limit", "malloc.bytes<1kB", "--limit", "./app:malloc.count<9"];
    let files =
        ["check.sarif", "check.md", "check.svg", "check.html"].map(|file| ["--export", file]).concat();
    let answer = gate(&place, &[&limits[..], &files].concat());
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    assert!(place.read("check.svg").contains(" regressions, 1 limit exceeded"), "{}", answer.exchange());
    assert!(place.read("check.md").contains("- 1 limit kept\n"), "{}", place.read("check.md"));
    let page = place.read("check.html");
    assert!(page.contains("Program app of build ") && !page.contains(".cache"), "{page}");
    assert_eq!(page.matches("run 1").count() + page.matches("empty-").count(), 1, "{page}");
    assert!(answer.stdout.contains("1,000 B → 1,001 B  +0.10 % (+1 B)"), "{}", answer.exchange());
    assert!(place.read("check.md").contains("| regression | `./app` | malloc bytes | 1,000 B | 1,001 B |"));
    let sarif: serde_json::Value = serde_json::from_str(&place.read("check.sarif")).expect("SARIF");
    for result in at(&sarif, "/runs/0/results").as_array().expect("results") {
        assert_eq!(at(result, "/locations/0/physicalLocation/artifactLocation/uri"), "app.c");
    }
    repository.write("app.c", &program(10, 1001, "/* the same */"));
    repository.commit("more of it\n\nScruple-Accept: ./app/malloc: a cache");
    let answer = gate(&place, &["--base", "main"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let text = answer.unwrapped();
    assert!(text.contains("accepted") && text.contains("a cache"), "{}", answer.exchange());
    // The file of acceptances counts before it is tracked.
    repository.git(&["commit", "--quiet", "--amend", "-m", "more of it"]);
    std::fs::remove_file(place.file("repo/notes.txt")).expect("a file");
    let accept = ["history", "accept", "HEAD", "--repo", "repo", "--file", "--reason", "a list"];
    assert_eq!(place.run(accept).code, 0);
    let answer = gate(&place, &["--base", "main"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(!answer.stdout.contains("not tracked"), "{}", answer.exchange());
    place.assert_no_processes();
}

#[test]
fn a_target_folder_that_others_share_does_not_mix_versions() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.write("Cargo.toml", "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    repository.write(".gitignore", "target\nCargo.lock\n");
    std::fs::create_dir_all(place.file("repo/src")).expect("a folder");
    let source = |bytes: u32| {
        format!("fn main() {{\n    std::hint::black_box(Vec::<u8>::with_capacity({bytes}));\n}}\n")
    };
    repository.write("src/main.rs", &source(1000));
    repository.commit("one");
    repository.git(&["checkout", "--quiet", "-b", "topic"]);
    repository.write("src/main.rs", &source(2000));
    let shared = place.file("shared-target");
    let check = |words: &[&str]| {
        let step = "cargo build --offline --quiet";
        let all =
            ["check", "--repo", "repo", "--no-store", "-r", "15", "--gate", "malloc.bytes", "--build", step];
        let all =
            [&all[..], &["--artifact", "target/debug/app"], words, &["--", "target/debug/app"]].concat();
        let mut command = place.command(all);
        // HOME is the test's place, so that Cargo must be pointed to the toolchain of the user who runs the test.
        let home = std::env::var_os("HOME").unwrap_or_default();
        for (name, below) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            let folder =
                std::env::var_os(name).unwrap_or_else(|| std::path::Path::new(&home).join(below).into());
            command.env(name, folder);
        }
        place.finish(command.env("CARGO_TARGET_DIR", &shared))
    };
    let answer = check(&[]);
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    assert!(answer.stdout.contains("malloc bytes"), "{}", answer.exchange());
    assert!(!shared.exists(), "built outside of the tree");
    let setting = format!("CARGO_TARGET_DIR={}", shared.display());
    let answer = check(&["--env", &setting]);
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    assert!(answer.stderr.contains("which versions would share"), "{}", answer.exchange());
}

/// Searches `folder` recursively for an entry named `name`.
fn below(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    let here = entries.iter().find(|path| path.file_name().is_some_and(|found| found == name));
    here.cloned().or_else(|| entries.iter().filter(|path| path.is_dir()).find_map(|path| below(path, name)))
}

#[test]
fn the_builds_of_two_versions_do_not_see_each_others_files() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.write("app.c", &program(10, 1000, ""));
    repository.write(".gitignore", "app\nkept\n");
    repository.commit("one");
    repository.git(&["checkout", "--quiet", "-b", "topic"]);
    // The file `kept` stands for the files of a build system: it lists the sizes of all versions built in that folder.
    let step = "cc -O1 -o app app.c && grep -o 'malloc([0-9]*)' app.c >> kept && pwd > app.where";
    for (bytes, places) in [(1001, "the first"), (1002, "the second")] {
        repository.write("app.c", &program(10, bytes, ""));
        repository.commit(places);
        let all =
            ["check", "--repo", "repo", "--no-store", "-r", "15", "--gate", "malloc.bytes", "--build", step];
        let answer =
            place.run([&all[..], &["--artifact", "app", "--artifact", "app.where", "--", "./app"]].concat());
        assert_eq!(answer.code, 1, "{}", answer.exchange());
    }
    let trees = below(place.path(), "tree.second").expect("a second tree");
    let kept = |tree: &str| std::fs::read_to_string(trees.with_file_name(tree).join("kept")).expect("kept");
    assert_eq!(kept("tree"), "malloc(1000)\n");
    assert_eq!(kept("tree.second"), "malloc(1000)\nmalloc(1001)\nmalloc(1002)\n", "it begins as a copy");
    let at =
        |tree: &str| std::fs::read_to_string(trees.with_file_name(tree).join("app.where")).expect("a path");
    assert_eq!(at("tree"), at("tree.second"), "paths inside builds are alike");
    assert!(!trees.with_file_name("tree.first").exists());
    place.assert_no_processes();
}

#[test]
fn nothing_that_a_repository_names_is_run_to_look_at_it() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1000]);
    repository.write("data.bin", "one");
    repository.commit("data");
    let seen = place.file("ran");
    place.shell_script("trap", &format!("touch {}; cat", seen.display()));
    let trap = place.file("trap").display().to_string();
    // `git -c` cannot override a key whose name contains an equals sign.
    for key in
        ["filter.trap.clean", "filter.a=b.clean", "filter.a=b.process", "core.fsmonitor", "gpg.program"]
    {
        repository.git(&["config", key, &trap]);
    }
    repository.git(&["config", "log.showSignature", "true"]);
    repository.git(&["config", "filter.trap.required", "true"]);
    repository.write(".gitattributes", "*.bin filter=a=b\n*.c filter=trap\n");
    repository.write("data.bin", "two");
    repository.write("app.c", &program(10, 1000, "/* other words */"));
    let answer = gate(&place, &["--base", "HEAD"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(!seen.exists(), "a program that the repository names has run");
}

#[test]
fn suites_and_servers_are_gated_with_their_own_words() {
    let place = Place::new();
    let answer = place.run(["check", "bench", "--baseline", "last", "--", "true"]);
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    assert!(answer.stderr.contains("name the other build with --against"), "{}", answer.exchange());
    for words in [["check", "run", "--no-store", "true"], ["check", "load", "--no-store", ":9"]] {
        let answer = place.run(words);
        assert_eq!(answer.code, 2, "{}", answer.exchange());
        assert!(answer.stderr.contains("has nothing to be compared with"), "{}", answer.exchange());
    }
    let against = fake_line(&place, &[r#"{"name":"zoo/ant","cost":5,"bytes":16}"#]);
    let suite = |case: &str| {
        let new = fake(&place, &[case]);
        let words =
            ["check", "bench", "--no-store", "--processes", "6", "--blocks", "12", "--gate", "alloc.bytes"];
        let mut words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        words.extend(["--against".to_owned(), against.clone(), "--".to_owned()]);
        words.extend(new);
        place.run(words)
    };
    let more = suite(r#"{"name":"zoo/ant","cost":5,"bytes":17}"#);
    assert_eq!(more.code, 1, "{}", more.exchange());
    assert!(more.stdout.contains("16 B → 17 B"), "{}", more.exchange());
    let same = suite(r#"{"name":"zoo/ant","cost":9,"bytes":16}"#);
    assert_eq!(same.code, 0);
    assert!(!same.stdout.contains("not gated"), "{}", same.exchange());
    let renamed = suite(r#"{"name":"zoo/bee","cost":9,"bytes":99}"#);
    assert_eq!(renamed.code, 3, "{}", renamed.exchange());
    for (version, case) in [("old", "ant"), ("new", "bee")] {
        let remark = format!("! ‘zoo/{case}’ is not gated, because only {version} has it");
        assert!(renamed.stdout.contains(&remark), "{}", renamed.exchange());
    }
    script(&place, &[("old", windows(200)), ("new", windows(260))]);
    let server = |words: &[&str]| {
        let all = [
            "check",
            "load",
            "http://127.0.0.1:9/",
            "--scripted",
            "load.json",
            "--rate",
            "1000",
            "--no-store",
        ];
        place.run([&all[..], &["--name", "new", "--against", "old=http://127.0.0.1:10/"], words].concat())
    };
    let slower = server(&["--gate", "load.p50"]);
    assert_eq!(slower.code, 1, "{}", slower.exchange());
    assert_eq!(server(&[]).code, 3, "no count was read");
    let unread = server(&["--gate", "load.p50,time.cpu"]);
    assert!(
        unread.stdout.contains("! --gate names ‘time.cpu’, which nothing compared"),
        "{}",
        unread.exchange()
    );
    assert!(!slower.stdout.contains("--gate names"), "{}", slower.exchange());
    assert!(!unread.stdout.contains("scruple show"), "nothing was stored: {}", unread.exchange());
    // The advice names an option that this verb has.
    let noisy = |base: u64| (0..10).map(|at| window(base + base * (at * 7 % 10) / 4)).collect::<Vec<_>>();
    script(&place, &[("old", noisy(200)), ("new", noisy(215))]);
    let open = server(&["--gate", "load.p50"]);
    let words = open.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("A longer load, with -d, may decide."), "{}", open.exchange());
}
