//! Units of work: each measures one part, and a history that is put together from units equals that of one machine.

mod command_lines;
mod compare;
mod load;
mod slurm;
mod ssh;
mod unit_processes;

use crate::repository::{BUILD, Repository, blocks};
use crate::support::Place;
use std::path::PathBuf;
use std::process::Stdio;

/// A repository with a change of cost, a commit of documents only, and versions that cannot be built or run.
fn eventful(place: &Place) -> Repository {
    let repository = Repository::new(place, "repo");
    repository.commit_program("first", 1000, 1000, "");
    repository.write("README", "documents");
    repository.commit("documents");
    repository.commit_program("step", 1000, 2000, "");
    repository.commit_program("broken", 1000, 2000, "this is no C");
    repository.commit_program("crash", 1000, 2000, "abort();");
    repository.commit_program("last", 1000, 2000, "volatile int v = 1; (void)v;");
    repository
}

fn words(rounds: &'static str) -> Vec<&'static str> {
    let words = ["history", "--repo", "repo", "--all", "--seed", "7", "--rounds", rounds];
    words.iter().chain(&BUILD).chain(&["--", "./app"]).copied().collect()
}

/// The folder with the units of the only history.
fn units(place: &Place) -> PathBuf {
    let first =
        |folder: PathBuf| std::fs::read_dir(folder).expect("a folder").flatten().next().expect("one").path();
    first(first(place.work().join("history")).join("farm"))
}

fn names(folder: PathBuf) -> Vec<String> {
    let all = std::fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> = all.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Writes the units of a history of two versions without doing any. Returns the place, the folder of the units, and the
/// names of the units that build and of those that weigh.
fn written_units() -> (Place, PathBuf, Vec<String>, Vec<String>) {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1000, 2000]);
    // The farm's program does nothing, so that the test itself does the units.
    place.write("scruple.toml", "[farm]\nkind = \"here\"\nprogram = \"/bin/true\"\n");
    let answer = place.run(words("4"));
    assert!(answer.code == 2 && answer.stderr.contains("without a result"), "{}", answer.exchange());
    let folder = units(&place);
    let builds = |name: &String| {
        std::fs::read_to_string(folder.join("units").join(name)).expect("a unit").contains("\"Build\"")
    };
    let (builds, measures) = names(folder.join("units")).into_iter().partition(builds);
    (place, folder, builds, measures)
}

#[test]
fn a_history_by_units_is_that_of_one_without() {
    let (plain, place) = (Place::new(), Place::new());
    let (_one, _other) = (eventful(&plain), eventful(&place));
    let answer = plain.run(words("6"));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    place.write("scruple.toml", "[farm]\nkind = \"here\"\n");
    let answer = place.run(words("6"));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let (plain, recorded) = (plain.recorded(), place.recorded());
    assert_eq!(plain.states(), recorded.states());
    assert_eq!(recorded.states(), ["built", "same-binary", "built", "build-failed", "run-failed", "built"]);
    assert_eq!(plain.version("crash")["why"], recorded.version("crash")["why"]);
    assert!(place.log_of(recorded.version("broken")).contains("this is no C"));
    for title in ["first", "documents", "step", "last"] {
        for metric in ["malloc.count", "malloc.bytes", "malloc.peak", "build.bytes"] {
            assert_eq!(plain.readings(title, metric), recorded.readings(title, metric), "{title}, {metric}");
        }
        let count = recorded.readings(title, "time.wall").len();
        assert_eq!(count, plain.readings(title, "time.wall").len(), "{title}");
    }
    let left = names(
        names(place.work().join("history"))
            .iter()
            .map(|key| place.work().join("history").join(key))
            .next()
            .expect("builds")
            .join("farm"),
    );
    assert_eq!(left, Vec::<String>::new(), "what is in the store is not kept twice");
    let again = place.run(words("6"));
    assert!(again.code == 0 && !again.stderr.contains("timed"), "nothing is left: {}", again.exchange());
    place.assert_no_processes();
}

#[test]
fn a_unit_that_is_done_again_or_twice_at_once_has_one_result_that_is_counted_once() {
    let (place, folder, first, second) = written_units();
    assert_eq!((first.len(), second.len()), (2, 2), "two builds, one for counting, one for rounds");
    let unit = |name: &str, node: &str| {
        let file = folder.join("units").join(name);
        let mut command = place.command(["unit", "--node", node]);
        command.arg(file).env("XDG_CACHE_HOME", place.file(node)).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("scruple runs")
    };
    for name in first.iter().chain(&second) {
        let copies = [unit(name, "one"), unit(name, "one"), unit(name, "two")];
        for mut copy in copies {
            assert!(copy.wait().expect("an end").success());
        }
        let result = std::fs::read_to_string(folder.join("results").join(name)).expect("a result");
        assert!(unit(name, "three").wait().expect("an end").success());
        assert_eq!(std::fs::read_to_string(folder.join("results").join(name)).expect("a result"), result);
    }
    assert_eq!(names(folder.join("tmp")), Vec::<String>::new());
    place.write("scruple.toml", "[farm]\nkind = \"here\"\n");
    let answer = place.run(words("4"));
    assert_eq!(answer.code, 0, "the results are there: {}", answer.exchange());
    let recorded = place.recorded();
    for title in ["version 0", "version 1"] {
        assert_eq!(recorded.readings(title, "time.wall").len(), 4);
    }
    for arm in recorded.arms() {
        assert!(blocks(arm).windows(2).all(|pair| pair[0] < pair[1]));
    }
}

#[test]
fn a_unit_that_cannot_be_done_is_reported_with_the_machine_and_the_reason() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1000, 2000]);
    place.write("scruple.toml", "[farm]\nkind = \"here\"\nscratch = \"scratch\"\n");
    place.write("scratch", "a file where a folder should be");
    // There is no folder for temporary files either.
    let answer = place.finish(place.command(words("2")).env("TMPDIR", place.file("scratch/none")));
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    assert!(answer.stderr.contains("failed on here; "), "{}", answer.exchange());
    std::fs::remove_file(place.file("scratch")).expect("a file");
    let answer = place.run(words("2"));
    assert_eq!(answer.code, 0, "the same command continues: {}", answer.exchange());
    let changed = place.write("changed", "{}");
    let answer = place.run(["unit", &changed.display().to_string()]);
    assert!(answer.code == 2 && answer.stderr.contains("is not a unit of a farm"), "{}", answer.exchange());
    place.write("scruple.toml", "[farm]\nkind = \"moon\"\n");
    let answer = place.run(words("2"));
    assert!(answer.code == 2 && answer.stderr.contains("moon"), "{}", answer.exchange());
}

#[test]
fn where_only_this_machine_has_a_compiler_units_weigh_what_was_built_here() {
    let (plain, place) = (Place::new(), Place::new());
    let (_one, _other) = (eventful(&plain), eventful(&place));
    let answer = plain.run(words("4"));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    // The nodes have neither a compiler nor a repository to build from.
    let program = place.write(
        "on-a-node",
        format!(
            "#!/bin/sh\nPATH={} exec {} \"$@\"\n",
            place.file("no-tools").display(),
            env!("CARGO_BIN_EXE_scruple")
        ),
    );
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
    place.write(
        "scruple.toml",
        format!("[farm]\nkind = \"here\"\nbuilds = \"here\"\nprogram = \"{}\"\n", program.display()),
    );
    let answer = place.run(words("4"));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let (plain, recorded) = (plain.recorded(), place.recorded());
    assert_eq!(plain.states(), recorded.states());
    for title in ["first", "step", "last"] {
        for metric in ["malloc.count", "malloc.bytes", "malloc.peak", "build.bytes"] {
            assert_eq!(plain.readings(title, metric), recorded.readings(title, metric), "{title}, {metric}");
        }
        assert_eq!(recorded.readings(title, "time.wall").len(), 4, "{title}");
    }
}

#[test]
fn nodes_wait_for_files_that_a_shared_folder_shows_late() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1000, 2000]);
    // Whatever a unit needs from the shared folder vanishes before it begins, and comes back one after the other, as on
    // a file system that shows a node late what others have written. Each node has its own cache.
    place.shell_script(
        "on-a-node",
        &format!(
            "for file in \"$@\"; do :; done\nfarm=$(dirname \"$(dirname \"$file\")\")\nshared=$farm/../..\n\
             late() {{ mv \"$1\" \"$1.late\" && (sleep \"$2\"; mv \"$1.late\" \"$1\") & }}\n\
             if grep -q '\"Measure\"' \"$file\"; then\n\
             for result in \"$farm\"/results/*; do late \"$result\" 1; done\n\
             for kept in \"$shared\"/built/* \"$shared\"/lists/*; do late \"$kept\" 2; done\nsleep 0.2\nfi\n\
             XDG_CACHE_HOME={}/$$ {} \"$@\"\ncode=$?\nwait\nexit $code",
            place.file("nodes").display(),
            env!("CARGO_BIN_EXE_scruple")
        ),
    );
    let farm = "[farm]\nkind = \"here\"\nfolder = \"shared\"\nprogram = \"./on-a-node\"\n";
    place.write("scruple.toml", farm);
    let answer = place.run(words("4"));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let recorded = place.recorded();
    assert_eq!(recorded.states(), ["built"; 2]);
    for title in ["version 0", "version 1"] {
        assert_eq!(recorded.readings(title, "time.wall").len(), 4);
    }
    place.assert_no_processes();
}

#[test]
fn a_history_takes_no_part_of_another_class_or_of_builds_that_are_not_there() {
    let (place, folder, builds, measures) = written_units();
    let unit = |name: &String| {
        let mut command = place.command(["unit", "--node", "one"]);
        command.arg(folder.join("units").join(name)).env("XDG_CACHE_HOME", place.file("one"));
        place.finish(&mut command)
    };
    for name in &builds {
        assert_eq!(unit(name).code, 0);
    }
    // The second node sees neither the file system with the builds nor a cache that holds them.
    let built = folder.parent().and_then(std::path::Path::parent).expect("a folder").join("built");
    let away = place.file("away");
    std::fs::rename(&built, &away).expect("builds");
    let mut lost = place.command(["unit", "--node", "two"]);
    lost.arg(folder.join("units").join(&measures[0])).env("XDG_CACHE_HOME", place.file("two"));
    let lost = place.finish(&mut lost);
    assert!(lost.code == 2 && lost.stderr.contains("all nodes must see that folder"), "{}", lost.exchange());
    std::fs::rename(&away, &built).expect("builds");
    std::fs::remove_file(folder.join("failed").join(&measures[0])).expect("what failed");
    for name in &measures {
        assert_eq!(unit(name).code, 0);
    }
    let results = || names(folder.join("results")).len();
    let all = results();
    let of_another_class = |name: &String| {
        let result = folder.join("results").join(name);
        let text = std::fs::read_to_string(&result).expect("a result");
        let mut document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        document["machine"]["machine_class"] = "another/1/class".into();
        std::fs::write(&result, document.to_string()).expect("a result");
    };
    of_another_class(&measures[1]);
    place.write("scruple.toml", "[farm]\nkind = \"here\"\n");
    let answer = place.run(words("4"));
    assert!(
        answer.code == 2 && answer.stderr.contains("class") && answer.stderr.contains("mixed = true"),
        "{}",
        answer.exchange()
    );
    assert_eq!(results(), all - 1, "the part of one of the two is left out");
    for name in measures.iter().filter(|name| !folder.join("results").join(name).exists()) {
        assert_eq!(unit(name).code, 0);
        of_another_class(name);
    }
    place.write("scruple.toml", "[farm]\nkind = \"here\"\nmixed = true\n");
    let answer = place.run(words("4"));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert_eq!(place.recorded().readings("version 0", "time.wall").len(), 4);
}
