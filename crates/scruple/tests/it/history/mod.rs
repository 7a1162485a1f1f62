//! Histories: which versions they have, the state of each, and its readings.

mod benches;
mod builds;
mod cache;
mod faults;
mod forecast;
mod kills;
mod merges;
mod resumed;
mod selection;
mod sizes;
mod yardstick;

use crate::repository::{BUILD, Recorded, Repository, blocks};
use crate::scripted_readings;
use crate::support::Place;

/// A repository with changes of cost, a spike and its revert, versions that fail in several ways, documents, and a
/// merge.
fn eventful(place: &Place) -> Repository {
    let repository = Repository::new(place, "repo");
    repository.commit_program("first", 1000, 1000, "");
    repository.write("README", "documents");
    repository.commit("documents");
    repository.commit_program("step", 1000, 2000, "");
    repository.commit_program("broken", 1000, 2000, "this is no C");
    repository.commit_program("endless", 1000, 2000, "for (;;) pause();");
    repository.commit_program("crash", 1000, 2000, "abort();");
    repository.commit_program("refuses", 1000, 2000, "return 3;");
    repository.commit_program("spike", 1000, 9000, "");
    repository.git(&["checkout", "--quiet", "-b", "side", "HEAD~5"]);
    repository.write("side", "of no consequence");
    repository.commit("aside");
    repository.git(&["checkout", "--quiet", "main"]);
    repository.commit_program("revert", 1000, 2000, "");
    repository.git(&["merge", "--quiet", "--no-ff", "-m", "merge", "side"]);
    repository
}

#[test]
fn every_version_is_built_and_weighed_or_says_why_not() {
    let place = Place::new();
    let repository = eventful(&place);
    let answer = place.history(&["--rounds", "4", "--time-limit", "5s", "--all"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let recorded = place.recorded();
    let bytes = |title: &str| recorded.readings(title, "malloc.bytes");
    // Each of these versions is next to a change, so that Scruple counts it a second time.
    assert_eq!((bytes("first"), bytes("step")), (vec![1000.0; 4], vec![2000.0; 4]));
    assert_eq!(bytes("spike"), [9000.0; 4]);
    for title in ["first", "step", "spike"] {
        assert_eq!(recorded.version(title)["state"], "built", "{title}");
        assert_eq!(recorded.readings(title, "time.wall").len(), 4);
        assert_eq!(recorded.readings(title, "build.time").len(), 1);
        assert!(recorded.readings(title, "build.bytes")[0] > 1000.0);
    }
    // A version with the same binary as another is launched for its time only.
    assert_eq!(recorded.version("documents")["state"], "same-binary");
    assert_eq!(recorded.version("documents")["same_as"], recorded.version("first")["commit"]);
    assert_eq!(bytes("documents"), [0.0; 0]);
    assert_eq!(recorded.version("revert")["same_as"], recorded.version("step")["commit"]);
    let parents = recorded.version("merge")["parents"].as_array().expect("parents").len();
    assert_eq!(parents, 2);
    for (title, state, why) in [
        ("broken", "build-failed", "the step ‘cc -O1 -o app app.c’ exited with code 1"),
        ("endless", "timed-out", "‘./app’ took longer than 5.00 s in the memory pass"),
        ("crash", "run-failed", "‘./app’ was ended by signal 6 (SIGABRT) in the memory pass"),
        ("refuses", "run-failed", "‘./app’ exited with code 3 in the memory pass"),
    ] {
        let version = recorded.version(title);
        assert_eq!((version["state"].as_str(), version["why"].as_str()), (Some(state), Some(why)));
        assert!(!place.log_of(version).is_empty(), "{title}");
    }
    assert!(
        place.log_of(recorded.version("broken")).contains("app.c:"),
        "the output of the compiler is kept"
    );
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
    place.assert_no_processes();
}

#[test]
fn rounds_are_taken_side_by_side() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1, 2, 3]);
    assert_eq!(place.history(&["--rounds", "5", "--time-only"]).code, 0);
    let recorded = place.recorded();
    assert_eq!(recorded.arms().len(), 3);
    assert!(recorded.arms().iter().all(|arm| blocks(arm) == [0, 1, 2, 3, 4]));
}

#[test]
fn finished_work_is_not_repeated_and_a_longer_range_adds_to_it() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let commits = repository.commit_allocations(1..=6);
    let counted = format!("echo x >> {}", place.file("builds").display());
    let take = |range: &str| {
        let answer = place.history(&[range, "--build", &counted, "--rounds", "3", "--time-only"]);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        (place.length("builds") / 2, place.recorded())
    };
    let (builds, recorded) = take(&commits[3]);
    assert_eq!((builds, recorded.states()), (4, vec!["built"; 4]));
    let before = recorded.readings("version 1", "time.wall");
    let (builds, recorded) = take(&commits[3]);
    assert_eq!((builds, recorded.count("time.wall")), (4, 12));
    let (builds, recorded) = take("HEAD");
    assert_eq!((builds, recorded.states()), (6, vec!["built"; 6]));
    assert_eq!(recorded.readings("version 1", "time.wall")[..3], before);
    // Scruple weighs new versions together with the nearest old one and the first one.
    assert_eq!(recorded.readings("version 1", "time.wall").len(), 3);
    assert_eq!(recorded.readings("version 3", "time.wall").len(), 6);
    assert_eq!(recorded.readings("version 5", "time.wall").len(), 3);
    // A range that ends at an earlier commit hides later versions. Their readings stay in the store, and the remark does
    // not call the range rewritten.
    let (_, recorded) = take(&commits[1]);
    assert_eq!(recorded.states(), ["built"; 2]);
    assert_eq!(recorded.remarks(), ["range-replaced"]);
    let (builds, recorded) = take("HEAD");
    assert_eq!((builds, recorded.states().len(), recorded.count("time.wall")), (6, 6, 24));
}

#[test]
fn more_commits_are_weighed_beside_those_that_a_history_has() {
    let place = Place::new();
    let commits = Repository::new(&place, "repo").commit_allocations(1..=6);
    assert_eq!(place.history(&["HEAD~2..HEAD", "--rounds", "2", "--time-only"]).code, 0);
    let extend = |range: &str| {
        let words = ["history", "extend", range, "--repo", "repo", "--rounds", "2", "--time-only"];
        place.run(words.iter().chain(&BUILD).chain(&["--", "./app"]))
    };
    let answer = extend(&commits[1]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(
        answer.stdout.starts_with(&format!("repo · HEAD~2..HEAD and {}\n", commits[1])),
        "{}",
        answer.stdout
    );
    let recorded = place.recorded();
    let titles: Vec<&str> = recorded.versions().iter().filter_map(|one| one["title"].as_str()).collect();
    assert_eq!(titles, ["version 0", "version 1", "version 4", "version 5"]);
    assert_eq!(recorded.states(), ["built"; 4]);
    assert!(titles.iter().all(|title| recorded.readings(title, "time.wall").len() >= 2));
    assert_eq!(extend(&commits[1]).code, 0);
    assert_eq!(place.recorded().count("time.wall"), recorded.count("time.wall"));
}

#[test]
fn a_history_is_continued_as_it_was_taken_whatever_the_configuration_says_now() {
    let place = Place::new();
    let commits = Repository::new(&place, "repo").commit_allocations(1..=6);
    let configuration = |run: &str| {
        format!(
            "[[command]]\nname = \"work\"\nrun = '{run}'\n[build]\nsteps = [\"cc -O1 -o app app.c\"]\nartifacts = [\"app\"]\n"
        )
    };
    let words =
        |verb: &'static [&'static str]| [verb, &["--repo", "repo", "--rounds", "2", "--time-only"]].concat();
    place.write("scruple.toml", configuration("./app"));
    let taken = place.run(words(&["history", "HEAD~2..HEAD"]));
    assert_eq!(taken.code, 0, "{}", taken.exchange());
    place.write("scruple.toml", configuration("./missing"));
    let mut extending = words(&["history", "extend"]);
    extending.push(&commits[1]);
    let extended = place.run(extending);
    assert_eq!(extended.code, 0, "{}", extended.exchange());
    assert_eq!(place.recorded().states(), ["built"; 4]);
    let named = place.run(words(&["history", "bisect", "-n", "other"]));
    assert!(
        named.stderr.contains("the history has no subject ‘other’: it has ‘work’"),
        "{}",
        named.exchange()
    );
}

#[test]
fn commits_are_selected_as_git_would_and_thinned() {
    let place = Place::new();
    let repository = eventful(&place);
    repository.git(&["tag", "v1", "HEAD~2"]);
    repository.git(&["tag", "-a", "-m", "annotated", "v2", "main"]);
    let titles = |words: &[&str]| -> Vec<String> {
        let words = [words, &["--rounds", "1", "--time-only", "--time-limit", "1s"]].concat();
        let answer = place.history(&words);
        assert!([0, 4].contains(&answer.code), "{}", answer.exchange());
        let title = |version: &serde_json::Value| version["title"].as_str().unwrap_or("").to_owned();
        place.recorded().versions().iter().map(title).collect()
    };
    assert_eq!(titles(&["--merges"]), ["merge"]);
    assert_eq!(titles(&["--tags"]), ["spike", "merge"]);
    assert_eq!(titles(&["--steps", "3", "--first-parent"]), ["first", "crash", "merge"]);
    assert_eq!(titles(&["--every", "4", "--first-parent"]), ["documents", "crash", "merge"]);
    assert_eq!(titles(&["HEAD~2..HEAD", "--first-parent"]), ["revert", "merge"]);
    assert_eq!(titles(&["--commits", "HEAD,HEAD~9"]), ["first", "merge"]);
    assert_eq!(titles(&["HEAD~1", "--since", "2026-01-01T00:08:30+0000"]), ["revert"]);
    place.write("list", "HEAD~1\nHEAD~9\n");
    for words in [&["--commits", "@list"][..], &["--commits-from", "list"], &["--commits", "@~1,@~9"]] {
        assert_eq!(titles(words), ["first", "revert"], "{words:?}");
    }
}

#[test]
fn adaptively_the_ends_come_first_and_then_the_difference() {
    let place = Place::new();
    Repository::new(&place, "repo")
        .commit_allocations((0..40).map(|index| if index < 23 { 100 } else { 200 }));
    let words = ["history", "bisect", "--repo", "repo", "--rounds", "6"];
    let answer = place.run(words.iter().chain(&BUILD).chain(&["--", "./app"]));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let recorded = place.recorded();
    let states = recorded.states();
    assert_eq!([states[0], states[39]], ["built"; 2]);
    let same = |index: usize| recorded.readings(&format!("version {index}"), "build.bytes").len() == 1;
    assert!(same(22) && same(23), "{states:?}");
    // Versions whose artefacts equal the first or the last are not weighed, and the remaining ones are not built.
    assert!(states.iter().filter(|state| **state == "skipped").count() >= 30, "{states:?}");
    assert!(recorded.remarks().contains(&"not-weighed"));
    // A history without bisection builds the remaining versions too.
    assert_eq!(place.history(&["--rounds", "6", "--all"]).code, 0);
    assert!(!place.recorded().states().contains(&"skipped"));
}

#[test]
fn overlays_make_old_versions_weighable() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let old = repository.commit_program("old", 10, 100, "fail_to_compile();");
    let flagged = repository.commit_program("flagged", 10, 100, "#ifndef FLAG\n#error no flag\n#endif");
    let patched = repository.commit_program("patched", 10, 100, "return 1;");
    repository.commit_program("new", 10, 100, "if (argc > 1 && atoi(argv[1]) != 4096) return 7;");
    place.write(
        "fix.patch",
        "--- a/app.c\n+++ b/app.c\n@@ -8,3 +8,3 @@\n p = p;\n-return 1;\n+return argc < 3;\n return 0;\n",
    );
    place.write(
        "scruple.toml",
        format!(
            "[[command]]\nname = \"work\"\nrun = './app {{n}} {{here}}'\n[build]\nsteps = [\"cc -O1 -o app app.c\"]\n\
             artifacts = [\"app\"]\n[history]\nparams = {{ n = 4096 }}\n\
             [[history.overlay]]\ncommits = \"{old}\"\nreplace = {{ file = \"app.c\", from = \"fail_to_compile();\", to = \"\" }}\n\
             [[history.overlay]]\ncommits = \"{old}..{flagged}\"\nbuild = [\"cc -O1 -DFLAG -o app app.c\"]\n\
             params = {{ n = 1024 }}\n\
             [[history.overlay]]\ncommits = \"{patched}\"\npatch = \"fix.patch\"\nenv = {{ UNUSED = \"1\" }}\n"
        ),
    );
    let answer = place.run(["history", "--repo", "repo", "--rounds", "2"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let recorded = place.recorded();
    assert_eq!(recorded.states(), ["built"; 4], "{:#?}", recorded.versions());
    let arms = recorded.arms();
    let sizes: Vec<f64> = arms.iter().filter_map(|arm| arm["params"]["n"].as_f64()).collect();
    assert_eq!(sizes, [4096.0, 1024.0, 4096.0, 4096.0]);
    assert!(arms.iter().all(|arm| arm["name"] == "work"));
}

#[test]
fn a_check_and_another_output_set_versions_apart() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_program("good", 10, 100, "puts(\"4\");");
    repository.commit_program("wrong", 10, 200, "puts(\"5\");");
    repository.commit_program("unchecked", 10, 300, "puts(\"4\"); /* BAD */");
    let answer = place.history(&["--rounds", "1", "--same-output", "--check-with", "! grep -q BAD app.c"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let recorded = place.recorded();
    assert_eq!(recorded.states(), ["built", "check-failed", "check-failed"]);
    let why = |title: &str| recorded.version(title)["why"].as_str().unwrap_or("").to_owned();
    assert!(why("wrong").starts_with("‘./app’ does not print the same as at "), "{}", why("wrong"));
    assert_eq!(why("unchecked"), "the check ‘! grep -q BAD app.c’ exited with code 1");
    // Without `--same-output`, a version whose output differs keeps its state, and a remark reports the difference.
    assert_eq!(place.history(&["--rounds", "1"]).code, 0);
    assert_eq!(place.recorded().states(), ["built"; 3]);
    assert!(place.recorded().remarks().contains(&"outputs-differ"));
}

#[test]
fn acceptances_are_read_from_messages_and_from_the_file() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_program("first", 10, 100, "");
    let trailer = place.run([
        "history",
        "accept",
        "HEAD",
        "--repo",
        "repo",
        "--metric",
        "malloc.bytes",
        "--reason",
        "a cache",
    ]);
    assert_eq!(trailer.stdout, "Scruple-Accept: malloc.bytes: a cache\n");
    repository.write("app.c", &crate::repository::program(10, 200, ""));
    repository.commit(&format!("more\n\nIt is faster.\n\n{}", trailer.stdout));
    let words = ["history", "accept", "HEAD~1", "--repo", "repo", "--reason", "the first", "--file"];
    assert_eq!(place.run(words).code, 0);
    let accept = |subject: &str| {
        let words = ["--repo", "repo", "--subject", subject, "--metric", "time.cpu", "--reason", "why"];
        place.run([&["history", "accept", "HEAD"], &words[..]].concat())
    };
    assert_eq!(accept("map::insert").stdout, "Scruple-Accept: map::insert/time.cpu: why\n");
    for subject in ["two: words", "two\nlines"] {
        let refused = accept(subject);
        assert!(refused.code == 2 && refused.stdout.is_empty(), "{}", refused.exchange());
    }
    assert_eq!(place.history(&["--rounds", "1", "--time-only"]).code, 0);
    let recorded: Recorded = place.recorded();
    let accepted = |title: &str| recorded.version(title)["accepted"][0].clone();
    assert_eq!(
        accepted("more"),
        serde_json::json!({"subject": null, "metric": "malloc.bytes", "reason": "a cache"})
    );
    assert_eq!(
        accepted("first"),
        serde_json::json!({"subject": null, "metric": null, "reason": "the first"})
    );
    let wrong =
        place.run(["history", "accept", "HEAD", "--repo", "repo", "--metric", "tiem", "--reason", "x"]);
    assert_eq!(wrong.code, 2);
}

#[test]
fn a_change_of_time_is_bisected_too() {
    let place = Place::new();
    let commits = Repository::new(&place, "repo").commit_allocations(1..=33);
    let names: Vec<String> = commits.iter().map(|commit| format!("./app @{}", &commit[..10])).collect();
    // The scripted arms differ in time only.
    let arm = |index: usize| scripted_readings::arm(if index < 13 { 1.0 } else { 1.4 }, index as u64);
    let arms: Vec<(&str, scripted_readings::Arm)> =
        names.iter().enumerate().map(|(index, name)| (name.as_str(), arm(index))).collect();
    place.script(&arms);
    let words = ["history", "bisect", "--repo", "repo", "--scripted", "script.json"];
    let answer = place.run(words.iter().chain(&BUILD).chain(&["--", "./app"]));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let recorded = place.recorded();
    let states = recorded.states();
    let built: Vec<usize> = (0..33).filter(|index| states[*index] == "built").collect();
    assert_eq!(built, [0, 8, 12, 13, 14, 16, 32]);
    let rounds = |index: usize| recorded.readings(&format!("version {index}"), "time.wall").len();
    assert!(rounds(12) >= 40 && rounds(13) >= 40, "suspects get more rounds");
    assert!(rounds(8) < rounds(12));
}

#[test]
fn a_bisection_of_counts_takes_no_time_and_a_later_one_of_times_does() {
    let place = Place::new();
    let commits = Repository::new(&place, "repo").commit_allocations(1..=9);
    let names: Vec<String> = commits.iter().map(|commit| format!("./app @{}", &commit[..10])).collect();
    let arm = |index: usize| {
        let bytes = if index < 5 { 4096.0 } else { 8192.0 };
        scripted_readings::arm(1.0, index as u64).with("counting", "malloc.bytes", move |_| bytes)
    };
    let arms: Vec<(&str, scripted_readings::Arm)> =
        names.iter().enumerate().map(|(index, name)| (name.as_str(), arm(index))).collect();
    place.script(&arms);
    let bisect = |more: &[&str]| {
        let words = ["history", "bisect", "--repo", "repo", "--scripted", "script.json"];
        let answer = place.run(words.iter().chain(more).chain(&BUILD).chain(&["--", "./app"]));
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        answer.stdout
    };
    let shown = bisect(&["--metrics", "malloc.bytes"]);
    assert!(shown.contains(&format!("regression  {}", &commits[5][..10])), "{shown}");
    assert_eq!(place.recorded().count("time.wall"), 0);
    bisect(&[]);
    assert!(place.recorded().count("time.wall") > 0);
}

/// The changes of allocated bytes: the index of the version, the level before, and the level after.
fn allocated(answer: &crate::support::Answer) -> Vec<[f64; 3]> {
    let judged = answer.json();
    let series = judged["series"].as_array().expect("series").iter();
    let bytes = series.filter(|series| series["metric"] == "malloc.bytes");
    let changes = bytes.flat_map(|series| series["changes"].as_array().expect("changes").clone());
    let number = |change: &serde_json::Value, key: &str| change[key].as_f64().unwrap_or(f64::NAN);
    changes.map(|change| ["at", "from", "to"].map(|key| number(&change, key))).collect()
}

#[test]
fn a_change_of_one_byte_is_counted_again_on_both_sides_and_nowhere_else() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    for (version, (steps, bytes)) in
        [(10, 1000), (10, 1001), (20, 1001), (30, 1001), (30, 1001)].iter().enumerate()
    {
        repository.commit_program(&format!("version {version}"), *steps, *bytes, "");
    }
    let rounds = ["--rounds", "3", "--json"];
    let answer = place.history(&rounds);
    let recorded = place.recorded();
    assert_eq!(allocated(&answer), [[1.0, 1000.0, 1001.0]]);
    let bytes = |version: &str| recorded.readings(version, "malloc.bytes").len();
    assert_eq!(["version 0", "version 1", "version 3", "version 4"].map(bytes), [4, 4, 2, 0]);
}

#[test]
fn a_change_outside_the_repository_is_attributed_to_no_version() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let outside = place.file("outside");
    for version in 0..6 {
        // The first launch of version 3 creates a file that makes every version allocate more.
        let makes = if version == 3 { "O_CREAT" } else { "0" };
        let more = format!(
            "int file = open(\"{}\", O_RDONLY | {makes}, 0600);\n\
             if (file >= 0) {{ void *volatile q = malloc(500); q = q; }}\nif (argc > 100 + {version}) return 1;",
            outside.display()
        );
        let bytes = if version < 5 { 1000 } else { 1001 };
        let text = crate::repository::program(10, bytes, &more);
        repository.write(".gitignore", "app\n");
        repository.write("app.c", &format!("#include <fcntl.h>\n{text}"));
        repository.commit(&format!("version {version}"));
    }
    let answer = place.history(&["--rounds", "3", "--json"]);
    let recorded = place.recorded();
    let bytes = |version: usize| recorded.readings(&format!("version {version}"), "malloc.bytes");
    assert_eq!((bytes(0), bytes(1)), (vec![1000.0; 2], vec![1000.0; 2]));
    assert_eq!((bytes(2), bytes(3)), (vec![1000.0, 1000.0, 1500.0, 1500.0], vec![1500.0; 4]));
    assert_eq!(allocated(&answer), [[5.0, 1500.0, 1501.0]]);
    assert!(recorded.remarks().contains(&"counts-shift"), "{:?}", recorded.remarks());
}

#[test]
fn versions_that_nothing_builds_have_neither_build_time_nor_built_bytes() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    for version in ["one", "two"] {
        repository.write("app.sh", &format!("echo {version}\n"));
        repository.commit(version);
    }
    let answer =
        place.run(["history", "--repo", "repo", "--rounds", "2", "--time-only", "--", "sh", "app.sh"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let recorded = place.recorded();
    assert_eq!((recorded.count("build.time"), recorded.count("build.bytes")), (0, 0));
    // With a build step, the history has a build time.
    assert_eq!(
        place
            .run([
                "history",
                "--repo",
                "repo",
                "--rounds",
                "2",
                "--time-only",
                "--build",
                "true",
                "--",
                "sh",
                "app.sh"
            ])
            .code,
        0
    );
    assert_eq!(place.recorded().count("build.time"), 2);
}

#[test]
fn counts_that_do_not_repeat_are_taken_as_often_as_a_verdict_needs() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let draws = |scale| format!("void *volatile q = malloc({scale} * (1000000 + getpid() % 1000)); q = q;");
    repository.commit_program("first", 10, 100, &draws(1));
    repository.commit_program("twice", 10, 100, &draws(2));
    repository.commit_program("steady", 10, 100, "");
    let answer = place.history(&["--rounds", "6", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let recorded = place.recorded();
    let read = |title| recorded.readings(title, "malloc.bytes");
    // A visit takes six readings where counts vary from launch to launch. Both sides of an exact change are visited
    // twice.
    assert!(read("first").len() >= 6 && read("twice").len() >= 6, "{:?} {:?}", read("first"), read("twice"));
    let steady = read("steady");
    assert!(steady.len() < 6 && steady.iter().all(|one| *one == steady[0]), "{steady:?}");
    let json = answer.json();
    let series = json["series"].as_array().expect("series");
    let bytes = series.iter().find(|one| one["metric"] == "malloc.bytes").expect("bytes were counted");
    assert_eq!(bytes["exact"].as_bool(), Some(false));
}
