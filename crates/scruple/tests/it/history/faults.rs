//! Histories that fail wholly or for some versions: each failure is one clear error or a recorded state.

use crate::programs::{eventually, send, skip};
use crate::repository::{BUILD, Repository};
use crate::support::{Answer, Place};
use std::process::{Command, Stdio};

fn quick(place: &Place, words: &[&str]) -> Answer {
    place.history(&[&["--rounds", "1", "--time-only"], words].concat())
}

/// Checks that an answer is one usage error (exit code 2) that contains all `parts`.
fn assert_refused(answer: &Answer, parts: &[&str]) {
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    assert!(parts.iter().all(|part| answer.stderr.contains(part)), "{}", answer.exchange());
    assert_eq!(answer.stdout, "");
}

#[test]
fn a_missing_repository_or_range_is_one_error() {
    let place = Place::new();
    std::fs::create_dir(place.file("repo")).expect("a folder");
    assert_refused(
        &quick(&place, &[]),
        &["cannot be used as a repository", "not a git repository", "--repo"],
    );
    let repository = Repository::new(&place, "repo");
    assert_refused(&quick(&place, &[]), &["has no commits yet"]);
    repository.commit_allocations([1]);
    assert_refused(&quick(&place, &["HEAD..HEAD"]), &["the range ‘HEAD..HEAD’", "has no commits", "git log"]);
    for range in ["v9..HEAD", "HEAD...v9", "HEAD ^v9", "v9"] {
        assert_refused(&quick(&place, &[range]), &["there is no revision ‘v9’", "git tag"]);
    }
    place.write("scruple.toml", "[[history.overlay]]\ncommits = \"v9..HEAD\"\nbuild = [\"true\"]\n");
    assert_refused(&quick(&place, &[]), &["there is no revision ‘v9’"]);
    std::fs::remove_file(place.file("scruple.toml")).expect("a file");
    let accept = ["history", "accept", "v9", "--repo", "repo", "--reason", "why"];
    assert_refused(&place.run(accept), &["there is no commit ‘v9’", "`git log`"]);
    assert_refused(&quick(&place, &["--tags"]), &["has no commits that fit the other options"]);
    assert_refused(&quick(&place, &["--no-store"]), &["leave out --no-store"]);
    let answer = place.run(["history", "--repo", "repo"]);
    assert_refused(&answer, &["name the command to weigh after --", "`scruple history --build make"]);
    let answer = place.run(["check", "--repo", "repo"]);
    assert_refused(&answer, &["name the command to weigh after --", "`scruple check --build make"]);
    let answer = place.run(["history", "status", "--repo", "repo"]);
    assert_refused(&answer, &["has no history of", "scruple history"]);
    place.assert_no_processes();
}

#[test]
fn how_to_trust_a_repository_of_another_user_is_said() {
    let place = Place::new();
    Repository::new(&place, "my repo").commit_allocations([1]);
    let mut command = place.command(["history", "--repo", "my repo", "--", "./app"]);
    // This variable makes git treat every repository as one of another user.
    let answer = place.finish(command.env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1"));
    assert_refused(
        &answer,
        &["dubious ownership", "`git config --global --add safe.directory '[place]/my repo'`"],
    );
}

#[test]
fn a_subject_that_a_history_has_not_is_one_error_that_names_those_it_has() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1, 2]);
    let named = ["--export-csv", "out.csv", "--subject", "nosuch"];
    // The readings are shown although the export fails.
    let answer = quick(&place, &named);
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    assert!(answer.stdout.contains("2 versions: 2 weighed"), "{}", answer.exchange());
    assert!(!place.file("out.csv").exists());
    let report = |words: &[&str]| place.run(["history", "report", "--repo", "repo"].iter().chain(words));
    let answer = report(&named);
    assert_refused(&answer, &["error: there is no subject ‘nosuch’: this history has ‘./app’\n"]);
    assert!(!place.file("out.csv").exists());
    assert_eq!(report(&["--export-csv", "out.csv", "--subject", "./app"]).code, 0);
    assert_eq!(std::fs::read_to_string(place.file("out.csv")).expect("a table").lines().count(), 3);
}

#[test]
fn a_program_that_cannot_be_run_is_not_reported_as_a_failed_check() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.write_program("run.sh", "#!/bin/sh\n");
    repository.commit("runs");
    let nobody_may = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(place.file("repo/run.sh"), nobody_may).expect("permissions");
    repository.commit("does not");
    let words = ["history", "--repo", "repo", "--rounds", "1", "--time-only", "--", "./run.sh"];
    let answer = place.run(words);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert_eq!(place.recorded().states(), ["built", "run-failed"]);
    assert!(answer.stdout.contains("2 versions: 1 weighed, 1 run failed\n"), "{}", answer.stdout);
    assert!(answer.stdout.contains("run failed: ‘./run.sh’ cannot be launched"), "{}", answer.stdout);
}

#[test]
fn a_shallow_clone_is_refused_where_it_ends_inside_the_range() {
    let place = Place::new();
    let repository = Repository::new(&place, "origin");
    repository.commit_allocations([1, 2, 3]);
    let url = format!("file://{}", place.file("origin").display());
    repository.git(&["clone", "--quiet", "--depth", "2", &url, &place.file("repo").display().to_string()]);
    assert_refused(&quick(&place, &[]), &["shallow clone", "git fetch --unshallow"]);
    assert_refused(&quick(&place, &["HEAD~2..HEAD"]), &["there is no revision", "git fetch --unshallow"]);
    let answer = quick(&place, &["HEAD~1..HEAD"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
}

#[test]
fn a_remote_repository_is_mirrored_and_an_unreachable_one_is_one_error() {
    let place = Place::new();
    let repository = Repository::new(&place, "origin");
    repository.commit_allocations([1, 2]);
    let url = format!("file://{}", place.file("origin").display());
    let take = || {
        let words = ["history", "--repo", &url, "--rounds", "1", "--time-only"];
        place.run(words.iter().chain(&BUILD).chain(&["--", "./app"]))
    };
    assert_eq!(take().code, 0);
    repository.commit_allocations([3]);
    assert_eq!(take().code, 0);
    let status = || place.run(["history", "status", "--repo", &url, "--json"]).json();
    assert_eq!(status()["history"]["versions"].as_array().map(Vec::len), Some(3));
    // The commits that were fetched before can be weighed while the remote is unreachable.
    std::fs::rename(place.file("origin"), place.file("moved")).expect("a rename");
    assert_eq!(take().code, 0);
    assert_eq!(status()["history"]["versions"].as_array().map(Vec::len), Some(3));
    let nowhere = format!("file://{}", place.file("nowhere").display());
    let answer = place.run(["history", "--repo", &nowhere, "--", "./app"]);
    assert_refused(&answer, &["cannot clone", "nowhere", "name a local clone with --repo"]);
    place.assert_no_processes();
}

#[test]
fn uncommitted_changes_and_a_rewritten_range_are_remarks() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1, 2, 3]);
    repository.write("app.c", "nothing that compiles");
    let answer = quick(&place, &[]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert_eq!(place.recorded().states(), ["built"; 3]);
    assert!(place.recorded().remarks().contains(&"dirty-tree"));
    repository.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    repository.commit_program("version 2 again", 10, 30, "");
    assert_eq!(quick(&place, &[]).code, 0);
    let recorded = place.recorded();
    assert!(recorded.remarks().contains(&"range-rewritten"), "{:?}", recorded.remarks());
    assert!(!recorded.remarks().contains(&"dirty-tree"));
    assert_eq!(recorded.states(), ["built"; 3]);
    assert_eq!(recorded.readings("version 2 again", "time.wall").len(), 1);
}

#[test]
fn a_shorter_range_that_takes_the_place_of_another_is_a_remark() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1, 2, 3]);
    assert_eq!(quick(&place, &[]).code, 0);
    let shorter = quick(&place, &["HEAD~1..HEAD"]);
    assert_eq!(shorter.code, 0, "{}", shorter.exchange());
    let recorded = place.recorded();
    assert!(
        recorded.remarks().contains(&"range-replaced"),
        "{:?} {}",
        recorded.remarks(),
        shorter.exchange()
    );
    assert_eq!(quick(&place, &[]).code, 0);
    assert!(!place.recorded().remarks().contains(&"range-replaced"), "the longer range shows all again");
}

#[test]
fn a_missing_toolchain_is_a_state_of_every_version_and_can_be_tried_again() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1, 2]);
    let tool = place.file("tools/compile-it");
    let command = format!("{} -O1 -o app app.c", tool.display());
    let words = [
        "history",
        "--repo",
        "repo",
        "--rounds",
        "1",
        "--time-only",
        "--build",
        &command,
        "--artifact",
        "app",
    ];
    let take = |more: &[&'static str]| place.run(words.iter().chain(more).chain(&["--", "./app"]));
    let answer = take(&[]);
    assert_eq!(answer.code, 4, "{}", answer.exchange());
    assert!(answer.stderr.contains("no version could be built"), "{}", answer.exchange());
    let recorded = place.recorded();
    assert_eq!(recorded.states(), ["build-failed"; 2]);
    let why = recorded.version("version 0")["why"].as_str().unwrap_or("").to_owned();
    assert!(why.contains("did not find a program (exit code 127)"), "{why}");
    std::fs::create_dir(place.file("tools")).expect("a folder");
    place.shell_script("tools/compile-it", "exec cc \"$@\"");
    assert_eq!(take(&[]).code, 4, "what failed is not tried again by itself");
    assert_eq!(take(&["--retry"]).code, 0);
    assert_eq!(place.recorded().states(), ["built"; 2]);
}

#[test]
fn an_artefact_of_an_earlier_version_never_passes_for_one_that_was_not_made() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_program("made", 10, 100, "");
    repository.write("make.sh", "true");
    repository.commit("not made");
    let words = ["history", "--repo", "repo", "--rounds", "1", "--time-only", "--artifact", "app"];
    let build = "if [ -e make.sh ]; then sh make.sh; else cc -o app app.c; fi";
    assert_eq!(place.run(words.iter().chain(&["--build", build, "--", "./app"])).code, 0);
    let recorded = place.recorded();
    assert_eq!(recorded.states(), ["built", "build-failed"]);
    assert_eq!(recorded.version("not made")["why"], "the build did not produce the artefact ‘app’");
}

#[test]
fn submodules_come_from_the_local_clone_and_are_a_state_where_they_cannot() {
    let place = Place::new();
    let inner = Repository::new(&place, "inner");
    inner.write("value.h", "#define VALUE 5\n");
    inner.commit("a value");
    let repository = Repository::new(&place, "repo");
    let local = ["-c", "protocol.file.allow=always"];
    let add = ["submodule", "--quiet", "add", "../inner", "inner"];
    let url = place.file("repo").display().to_string();
    repository.git(&["remote", "add", "origin", &url]);
    repository.git(&[&local[..], &add].concat());
    repository.commit_program(
        "with a submodule",
        10,
        100,
        "\n#include \"inner/value.h\"\nprintf(\"%d\", VALUE);",
    );
    // The submodule's clone inside the repository has the commit, although the submodule's address does not exist any
    // more.
    std::fs::rename(place.file("inner"), place.file("moved")).expect("a rename");
    let answer = quick(&place, &[]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    std::fs::remove_dir_all(place.file("repo/.git/modules")).expect("a folder");
    std::fs::remove_dir_all(place.file("cache")).expect("a folder");
    let answer = quick(&place, &["--retry", "--env", "ANOTHER=recipe"]);
    assert_eq!(answer.code, 4, "{}", answer.exchange());
    let why = place.recorded().version("with a submodule")["why"].as_str().unwrap_or("").to_owned();
    let ending = "inner' does not exist";
    assert!(why.starts_with("cannot fetch its submodules: ") && why.ends_with(ending), "{why}");
}

#[test]
fn versions_whose_submodules_cannot_be_fetched_do_not_stop_a_history() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    std::fs::create_dir(place.file("repo/inner")).expect("a folder");
    repository.write(".gitmodules", "[submodule \"inner\"]\n\tpath = inner\n\turl = ../missing\n");
    repository.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{},inner", "1".repeat(40))]);
    repository.commit_allocations(1..=7);
    repository.git(&["rm", "--quiet", "--cached", "inner"]);
    repository.git(&["rm", "--quiet", "-f", ".gitmodules"]);
    std::fs::remove_dir(place.file("repo/inner")).expect("a folder");
    repository.commit_allocations([8, 9]);
    let answer = quick(&place, &["--all"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let states = place.recorded().states().join(" ");
    assert_eq!(states, format!("{}built built", "build-failed ".repeat(7)), "{}", answer.exchange());
}

/// Ssh, for example, asks on the terminal about an unknown host. The kernel would stop it outside of the foreground.
#[test]
fn programs_of_a_build_that_ask_on_the_terminal_fail_and_do_not_wait() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.write("make.sh", "echo sure? > /dev/tty; read answer < /dev/tty && touch app");
    repository.commit("asks");
    let scruple = shell_words::quote(env!("CARGO_BIN_EXE_scruple"));
    let line = format!(
        "{scruple} history --repo repo --rounds 1 --time-only --build 'sh make.sh' --artifact app \
         --build-limit 60s -- ./app"
    );
    let mut command = Command::new("script");
    command.args(["-q", "-e", "-c", &line, "/dev/null"]).current_dir(place.path()).env("TERM", "xterm");
    command.env("HOME", place.path()).env("SCRUPLE_STORE", place.file("store.db")).stdin(Stdio::null());
    command.env("XDG_CACHE_HOME", place.file("cache"));
    let shown = command.output().expect("util-linux has script").stdout;
    let shown = String::from_utf8_lossy(&shown);
    assert!(shown.contains("build failed: the step ‘sh make.sh’ exited with code 2"), "{shown}");
}

#[test]
fn a_build_that_hangs_is_ended_with_everything_it_started() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.write("make.sh", "sleep 1000 & sleep 1000");
    repository.commit("hangs");
    repository.write("make.sh", "cp make.sh app; chmod +x app");
    repository.commit("builds");
    let words = ["history", "--repo", "repo", "--rounds", "1", "--time-only", "--build", "sh make.sh"];
    let answer = place.run(words.iter().chain(&[
        "--build-limit",
        "10s",
        "--artifact",
        "make.sh",
        "--",
        "sh",
        "-c",
        "true",
    ]));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let recorded = place.recorded();
    assert_eq!(recorded.states(), ["timed-out", "built"]);
    assert_eq!(
        recorded.version("hangs")["why"],
        "the step ‘sh make.sh’ exceeded its time limit and was ended"
    );
    place.assert_no_processes();
}

#[test]
fn an_interruption_keeps_what_was_done_and_two_do_not_build_at_once() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1, 2]);
    repository.write("app.c", "slow");
    repository.commit("slow");
    let begun = place.file("begun").display().to_string();
    let step = format!("if grep -q slow app.c; then echo x > {begun}; sleep 1000; else cc -o app app.c; fi");
    let words = ["history", "--repo", "repo", "--rounds", "1", "--time-only", "--build", &step];
    let words: Vec<&str> = words.iter().chain(&["--artifact", "app", "--", "./app"]).copied().collect();
    let mut command = place.command(&words);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("scruple runs");
    assert!(eventually(|| place.length("begun") > 0), "the slow version is never built");
    let other = place.run(&words);
    assert_refused(&other, &["another scruple", &format!("process {}", child.id()), "wait for it"]);
    send(&child, "INT");
    let answer = Answer::of(child.wait_with_output().expect("an answer"), place.path());
    assert_eq!(answer.code, 130, "{}", answer.exchange());
    assert!(answer.stderr.contains("the same command continues"), "{}", answer.exchange());
    assert_eq!(place.recorded().states(), ["built", "built", "queued"]);
    assert_eq!(place.recorded().ended(), "interrupted");
    place.assert_no_processes();
}

#[test]
fn a_full_disk_is_an_error_and_no_fault_of_a_version() {
    let place = Place::new();
    Repository::new(&place, "repo").commit_allocations([1, 2, 3]);
    std::fs::create_dir(place.file("small")).expect("a folder");
    // A file system mounted for the test is the only disk that the test may fill.
    let script = "mount -t tmpfs -o size=256k tmpfs small && exec \"$@\"";
    let may = Command::new("unshare")
        .args(["-rm", "sh", "-c", &script.replace("exec \"$@\"", "true")])
        .current_dir(place.path())
        .output();
    if !may.is_ok_and(|output| output.status.success()) {
        return skip("no file system can be mounted here");
    }
    let step = "cc -O1 -o app app.c; head -c 400000 /dev/zero > filler";
    let mut command = Command::new("unshare");
    let template = place.command(["x"]);
    command.current_dir(place.path()).stdin(Stdio::null());
    for (name, value) in template.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("XDG_CACHE_HOME", place.file("small")).args(["-rm", "sh", "-c", script, "sh"]);
    command.arg(env!("CARGO_BIN_EXE_scruple")).args([
        "history",
        "--repo",
        "repo",
        "--rounds",
        "1",
        "--time-only",
    ]);
    command.args(["--build", step, "--artifact", "app", "--", "./app"]);
    let answer = place.finish(&mut command);
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    assert!(answer.stderr.contains("free some space"), "{}", answer.exchange());
    assert!(answer.stderr.contains("the same command then continues"), "{}", answer.exchange());
    assert!(place.recorded().states().iter().all(|state| ["queued", "built"].contains(state)));
}

#[test]
fn files_of_an_interrupted_step_are_not_part_of_a_later_build() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.write(".gitignore", "part\napp\n");
    repository.write("hang", "");
    repository.commit("hangs");
    repository.git(&["rm", "--quiet", "hang"]);
    repository.commit("builds");
    // Like make, the step does not make a file that exists.
    let step = "if [ -e hang ]; then echo half > part; sleep 1000; fi; [ -e part ] || echo whole > part; cp part app";
    let words =
        ["history", "--repo", "repo", "--rounds", "1", "--time-only", "--build", step, "--build-limit", "1s"];
    let answer = place.run(words.iter().chain(&["--artifact", "app", "--", "grep", "whole", "app"]));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert_eq!(place.recorded().states(), ["timed-out", "built"]);
}

#[test]
fn a_tree_that_git_cannot_use_is_created_again() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1]);
    assert_eq!(quick(&place, &[]).code, 0);
    let key =
        place.work().join("history").read_dir().expect("a folder").flatten().next().expect("a repository");
    std::fs::write(key.path().join("tree/.git/index"), "no index").expect("a file");
    repository.commit_allocations([2]);
    assert_eq!(quick(&place, &[]).code, 0);
    assert_eq!(place.recorded().states(), ["built"; 2]);
}

#[test]
fn a_build_that_damages_the_git_of_its_tree_does_not_fail_later_commits() {
    for harm in [
        "rm -rf .git",
        "git checkout -q -b other; git config core.bare true",
        "touch .git/index.lock",
        "echo nonsense > .git/config",
        "cd ..; rm -rf tree",
        "mkdir shut; touch shut/file; chmod 500 shut",
    ] {
        let place = Place::new();
        // A repository in a parent folder, which Scruple must never mistake for that of the tree.
        let above = Repository::new(&place, ".");
        above.write("precious", "committed");
        above.git(&["add", "precious"]);
        above.commit("above");
        above.write("precious", "not committed yet");
        let repository = Repository::new(&place, "repo");
        repository.commit_program("first", 10, 100, "");
        repository.write("harm.sh", harm);
        repository.commit("harmful");
        repository.git(&["rm", "--quiet", "harm.sh"]);
        repository.commit_program("third", 10, 300, "");
        repository.commit_program("last", 10, 400, "");
        let step = "cc -O1 -o app app.c; if [ -e harm.sh ]; then . ./harm.sh; fi";
        let answer = quick(&place, &["--build", step]);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        let recorded = place.recorded();
        let states = ["first", "third", "last"].map(|title| recorded.version(title)["state"].clone());
        assert_eq!(states, ["built"; 3], "{harm}");
        let harmful = if harm.contains("rm -rf tree") { "build-failed" } else { "same-binary" };
        assert_eq!(recorded.version("harmful")["state"], harmful, "{harm}");
        assert_eq!(above.git(&["show", "-s", "--format=%s"]), "above");
        assert_eq!(std::fs::read_to_string(place.file("precious")).expect("a file"), "not committed yet");
    }
}

#[test]
fn a_pipe_that_a_build_leaves_is_no_artefact() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.write_program("run.sh", "#!/bin/sh\n[ ! -e pipe ]\n");
    repository.commit("first");
    let words = ["history", "--repo", "repo", "--rounds", "1", "--time-only", "--build", "mkfifo pipe"];
    let answer = place.run(words.iter().chain(&["--", "./run.sh"]));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert_eq!(place.recorded().states(), ["built"]);
}

#[test]
fn a_machine_that_slows_down_between_builds_changes_no_version() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations((0..12).map(|version| 1000 + version));
    // From the seventh build on, each build takes half a second longer.
    let count = place.file("builds");
    let slows = format!(
        "echo x >> {0}; if [ $(wc -l < {0}) -gt 6 ]; then sleep 0.5; fi",
        shell_words::quote(&count.display().to_string())
    );
    let answer = place.history(&["--build", &slows, "--rounds", "1", "--all", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let page = answer.json();
    let builds = page["series"].as_array().expect("series").iter().find(|one| one["metric"] == "build.time");
    let builds = builds.expect("what building took");
    assert_eq!(builds["points"].as_array().map(Vec::len), Some(12));
    assert_eq!(builds["changes"].as_array().map(Vec::len), Some(0), "{builds:#}");
    assert!(builds["cannot"].as_str().is_some_and(|why| why.contains("built once")), "{builds:#}");
    assert_eq!(page["break_even"].as_array().map(Vec::len), Some(0));
}
