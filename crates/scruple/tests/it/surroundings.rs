//! The surroundings of a measured program: its streams, environment and hooks, and Scruple's own streams.

use crate::programs::skip;
use crate::support::{Answer, Place};
use std::io::Write;
use std::process::{Command, Stdio};

/// Launches commands twelve times: in the timing pass, and at least twice in each other pass. Keeps no run.
fn run(place: &Place, words: &[&str]) -> Answer {
    let answer = place.run(["run", "--no-store", "-r", "12"].iter().chain(words));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    answer
}

#[test]
fn standard_input_is_empty_a_file_or_a_pipe() {
    let place = Place::new();
    place.write("in.txt", "some input\n");
    for (input, expected) in [("null", ""), ("in.txt", "some input\n"), ("pipe:in.txt", "some input\n")] {
        run(&place, &["--input", input, "--output", "out.txt", "cat"]);
        assert_eq!(place.read("out.txt"), expected, "--input {input}");
    }
}

#[test]
fn a_file_is_read_from_its_beginning_by_every_launch() {
    let place = Place::new();
    place.write("in.txt", "12345");
    place.shell_script("count", "wc -c >> counts");
    run(&place, &["--input", "in.txt", "./count"]);
    let counts = place.read("counts");
    assert!(counts.lines().count() >= 4 && counts.lines().all(|line| line.trim() == "5"), "{counts}");
}

#[test]
fn no_output_and_no_export_overwrites_an_input_or_a_store() {
    let place = Place::new();
    place.write("in.txt", "some input\n");
    for input in ["in.txt", "pipe:./in.txt"] {
        let answer =
            place.run(["run", "--no-store", "-r", "1", "--input", input, "--output", "in.txt", "cat"]);
        assert!(answer.code == 2 && answer.stderr.contains("overwrite the input"), "{}", answer.exchange());
    }
    assert_eq!(place.read("in.txt"), "some input\n");
    run(&place, &["--time-only", "true"]);
    let stored = ["run", "-r", "1", "--time-only", "--store", "kept.csv", "true"];
    assert_eq!(place.run(stored).code, 0);
    for words in [&["store", "export", "--store", "kept.csv", "--export", "kept.csv"][..], &{
        let mut words = stored.to_vec();
        words.extend(["--export", "kept.csv"]);
        words
    }] {
        let answer = place.run(words);
        assert!(answer.code == 2 && answer.stderr.contains("is a store"), "{}", answer.exchange());
    }
    let listed = place.run(["store", "list", "--store", "kept.csv"]);
    assert_eq!((listed.code, listed.stdout.lines().count()), (0, 1), "{}", listed.exchange());
}

#[test]
fn an_export_is_written_through_a_link_that_leads_nowhere_yet() {
    let place = Place::new();
    std::os::unix::fs::symlink("later.csv", place.file("link.csv")).expect("a link");
    run(&place, &["--time-only", "--export", "link.csv", "true"]);
    assert!(place.file("link.csv").is_symlink() && place.length("later.csv") > 0);
}

#[test]
fn a_work_folder_in_use_stays_even_if_its_process_has_no_id_here() {
    let place = Place::new();
    let folder = |number: u32| place.work().join(format!("work-{number:010}"));
    // No process of this machine can have these ids: they are of containers that share the cache.
    let [used, left] = [4_000_000_001, 4_000_000_002].map(folder);
    [&used, &left].iter().for_each(|folder| std::fs::create_dir(folder).expect("a folder"));
    let lock = std::fs::File::create(used.with_extension("lock")).expect("a file");
    lock.lock().expect("locked");
    run(&place, &["--time-only", "true"]);
    assert!(used.exists() && !left.exists());
    let found = std::fs::read_dir(place.work()).expect("a folder").flatten();
    let work = found.filter(|entry| entry.file_name().to_string_lossy().starts_with("work-"));
    assert_eq!(work.count(), 2, "the folder and its lock");
}

#[test]
fn a_program_that_does_not_read_its_pipe_is_no_problem() {
    let place = Place::new();
    place.write("in.txt", vec![b'x'; 1_000_000]);
    run(&place, &["--input", "pipe:in.txt", "true"]);
}

#[test]
fn standard_input_may_be_inherited() {
    let place = Place::new();
    let mut command = place.command([
        "run",
        "--no-store",
        "-r",
        "1",
        "--time-only",
        "--input=inherit",
        "--output=out.txt",
        "cat",
    ]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("scruple runs");
    child.stdin.take().expect("a pipe").write_all(b"mine").expect("written");
    assert!(child.wait().expect("an end").success());
    assert_eq!(place.read("out.txt"), "mine");
}

#[test]
fn output_is_shown_only_where_it_is_asked_for() {
    let place = Place::new();
    for hidden in [vec![], vec!["--output=pipe"], vec!["--output=null"]] {
        let answer = run(&place, &[&["echo said"], hidden.as_slice()].concat());
        assert!(!answer.stdout.contains("said\n"), "{hidden:?}");
    }
    for shown in ["--show-output", "--output=inherit"] {
        let answer = run(&place, &["echo said", shown]);
        assert!(answer.stdout.matches("said\n").count() >= 4, "{shown}: {}", answer.exchange());
    }
}

#[test]
fn outputs_are_compared_by_their_content_and_not_by_their_length() {
    let place = Place::new();
    place.shell_script("self", "echo $$");
    let codes = |words: &[&str]| {
        let run = run(&place, &[&["--json"], words].concat()).json();
        let warnings = run["warnings"].as_array().expect("warnings").clone();
        let codes = warnings.iter().filter_map(|warning| warning["code"].as_str().map(str::to_owned));
        codes.filter(|code| code.starts_with("output")).collect::<Vec<_>>()
    };
    assert_eq!(codes(&["echo a", "echo b"]), ["outputs-differ"]);
    assert_eq!(codes(&["echo a", "printf 'a\\n'"]), Vec::<String>::new());
    assert_eq!(codes(&["./self", "echo b"]), ["output-varies"]);
}

#[test]
fn the_environment_is_padded_by_less_than_a_page_and_differently_in_each_block() {
    let place = Place::new();
    place.shell_script("padding", "echo ${#SCRUPLE_PADDING} >> paddings");
    let mut command = place.command(["run", "--no-store", "--time-only", "-r", "12", "./padding"]);
    command.env("SCRUPLE_PADDING", "an older one").env("BIG", "x".repeat(100_000));
    assert_eq!(place.finish(&mut command).code, 0);
    let text = place.read("paddings");
    let mut lengths: Vec<usize> = text.lines().map(|line| line.parse().expect("a length")).collect();
    assert!(lengths.len() == 12 && lengths.iter().all(|length| *length < 4096), "{lengths:?}");
    lengths.dedup();
    assert!(lengths.len() > 8, "{lengths:?}");
}

#[test]
fn hooks_come_in_their_order() {
    let place = Place::new();
    place.shell_script("run", "echo run $1 >> log");
    let log = |word: &str| format!("echo {word} >> log");
    let (setup, prepare, conclude, cleanup) = (log("setup"), log("prepare"), log("conclude"), log("cleanup"));
    let hooks = ["-s", &setup, "-p", &prepare, "-C", &conclude, "-c", &cleanup];
    run(&place, &[&["--time-only", "-w", "1", "./run"], hooks.as_slice()].concat());
    let once = "prepare run conclude ".repeat(13);
    assert_eq!(
        place.read("log").replace('\n', " ").replace("run  ", "run "),
        format!("setup {once}cleanup ")
    );
}

#[test]
fn each_command_may_have_a_hook_of_its_own_with_its_parameters() {
    let place = Place::new();
    place.shell_script("run", "echo run $1 >> log-$1");
    let words = ["--time-only", "-L", "x", "a,b", "./run {x}"];
    run(&place, &[words.as_slice(), &["-p", "echo before {x} >> log-{x}"]].concat());
    for x in ["a", "b"] {
        assert_eq!(place.read(&format!("log-{x}")), format!("before {x}\nrun {x}\n").repeat(12));
    }
    let two = ["--time-only", "./run c", "./run d", "-p", "echo one >> log-c", "-p", "echo two >> log-d"];
    run(&place, &two);
    assert_eq!(place.read("log-d"), "two\nrun d\n".repeat(12));
}

#[test]
fn a_hook_that_fails_ends_the_run_and_is_named() {
    let place = Place::new();
    for (flag, name) in [("-s", "--setup"), ("-p", "--prepare"), ("-C", "--conclude"), ("-c", "--cleanup")] {
        let answer = place.run(["run", "--no-store", "-r", "1", "true", flag, "exit 7"]);
        assert_eq!(answer.code, 4, "{}", answer.exchange());
        let expected = format!("error: the {name} command ‘exit 7’ exited with code 7: make it end");
        assert!(answer.stderr.starts_with(&expected), "{}", answer.stderr);
    }
}

#[test]
fn a_setup_may_build_the_program_and_is_shared_by_commands() {
    let place = Place::new();
    let build = "printf '#!/bin/sh\\n' > built && chmod +x built && mkdir made";
    let clean = "rmdir made && rm built";
    run(&place, &["--time-only", "-s", build, "-c", clean, "--self", "./built 1", "./built 2"]);
    assert!(!place.file("built").exists() && !place.file("made").exists());
    // What a setup writes is not a change during the measurement.
    place.shell_script("again", "true");
    let answer =
        place.run(["run", "--no-store", "--time-only", "-r", "2", "-s", "echo : >> again", "./again"]);
    assert!(answer.code == 0 && !answer.stdout.contains("changed while"), "{}", answer.exchange());
    let missing = place.run(["run", "-s", "true", "-c", "touch cleaned", "./nothing"]);
    assert!(missing.stderr.contains("there is no file ‘./nothing’") && place.file("cleaned").exists());
}

#[test]
fn a_setup_that_overwrites_the_program_of_another_command_is_refused() {
    let place = Place::new();
    place.shell_script("app", "true");
    let of = |setup: &str, command: &str| {
        let answer = place.run(["run", "--no-store", "-L", "v", "one,two", "-s", setup, command]);
        assert_eq!(answer.code, 2, "{}", answer.exchange());
        answer.stderr
    };
    let only = of("echo '# {v}' >> app", "./app");
    assert!(only.contains("only --setup or --cleanup uses the parameter ‘v’"), "{only}");
    for command in ["./app {v}", "./app {v} | cat"] {
        let message = of("echo '# {v}' >> app", command);
        assert!(message.contains("a later command changed ‘./app’, which ‘./app one"), "{message}");
    }
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_error() {
    let place = Place::new();
    let mut command = place.command(["run", "--no-store", "-r", "3", "true"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("scruple runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("an end");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

/// Runs Scruple below a shell with the given redirections. `before` is shell text in front of the command.
fn redirected(place: &Place, before: &str, redirections: &str) -> Answer {
    let scruple = place.command(["run", "-r", "6", "true"]);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("{before} \"$0\" \"$@\" {redirections}"));
    shell.arg(scruple.get_program()).args(scruple.get_args()).current_dir(place.path());
    for (name, value) in scruple.get_envs() {
        if let Some(value) = value {
            shell.env(name, value);
        }
    }
    Answer::of(shell.output().expect("sh runs"), place.path())
}

#[test]
fn closed_streams_and_nohup_do_no_harm() {
    let place = Place::new();
    for (before, redirections) in
        [("", "<&-"), ("", ">&-"), ("", "2>&-"), ("", "<&- >&- 2>&-"), ("nohup", "2>/dev/null")]
    {
        let answer = redirected(&place, before, redirections);
        assert_eq!((answer.code, answer.stderr.as_str()), (0, ""), "{before} {redirections}");
        assert!(place.run(["show"]).stdout.contains("1 command · 3 blocks"));
    }
}

#[test]
fn a_program_that_reads_from_the_terminal_is_not_stopped_by_it() {
    let place = Place::new();
    let scruple = env!("CARGO_BIN_EXE_scruple");
    let words =
        format!("{scruple} run --no-store --time-only -r 1 --input=inherit --output=out.txt 'head -n 1'");
    let mut command = Command::new("script");
    command.args(["-qec", &words, "/dev/null"]).current_dir(place.path()).env("HOME", place.path());
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = spawned else { return skip("there is no `script` to make a terminal") };
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(b"typed\n").expect("written");
    let ended = crate::programs::eventually(|| child.try_wait().expect("a state").is_some());
    if !ended {
        child.kill().expect("a kill");
    }
    assert!(ended && place.read("out.txt").contains("typed"));
}

#[test]
fn a_measured_program_does_not_see_where_the_store_is() {
    let place = Place::new();
    place.shell_script("show", "env >> seen");
    let own = place.file("own.db");
    let mut command = place.command(["run", "-r", "8", "--label", "mine", "./show"]);
    let output = command.env("SCRUPLE_STORE", &own).output().expect("scruple runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen = place.read("seen");
    assert!(seen.contains("PATH=") && !seen.contains("SCRUPLE_STORE"), "{seen}");
    let shown = place.run(["show", "mine", "--store", &own.display().to_string()]);
    assert_eq!(shown.code, 0, "{}", shown.exchange());
}
