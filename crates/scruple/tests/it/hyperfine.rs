//! Command lines of hyperfine's users, with `scruple run` in place of `hyperfine`.

use crate::scripted_readings::arm;
use crate::support::{Answer, Place};

fn run(place: &Place, words: &[&str]) -> Answer {
    let answer = place.run(["run", "--time-only", "--budget", "1ms"].iter().chain(words));
    assert_eq!(answer.code, 0, "{words:?}: {}", answer.exchange());
    answer
}

#[test]
fn the_commands_of_its_readme_run() {
    let place = Place::new();
    place.write("file", "TODO: nothing\n");
    place.write("Makefile", "all:\n\ttouch made\nclean:\n\trm -f made\n");
    let lines: &[&[&str]] = &[
        &["sleep 0.01"],
        &["--runs", "5", "sleep 0.01"],
        &["od file", "cat file"],
        &["--warmup", "3", "grep -R TODO *"],
        &["--prepare", "make clean", "--parameter-scan", "num_threads", "1", "3", "make -j {num_threads}"],
        &["--parameter-scan", "delay", "0.01", "0.03", "-D", "0.01", "sleep {delay}"],
        &["-L", "compiler", "gcc,cc", "{compiler} --version"],
        &["-L", "offset", "-1,-2", "echo {offset}"],
        &["--prepare", "sync; echo 3 | tee caches", "grep -R TODO *"],
        &["--shell", "bash", "for i in {1..100}; do echo test; done"],
        &["my_function() { true; }; my_function"],
        &["-N", "grep TODO file"],
        &["-N", "true"],
        &["--shell=none", "true"],
        &["-i=1,2", "false"],
        &["--ignore-failure", "false"],
        &["--reference", "true", "--reference-name", "nothing", "sleep 0.01"],
        &["-u", "millisecond", "--style", "basic", "--sort", "command", "true"],
        &["--export-markdown", "out.md", "--export-orgmode", "out.org", "--export-json", "out.json", "true"],
    ];
    for words in lines {
        run(&place, words);
    }
    assert!(place.read("out.org").starts_with('|') && place.read("out.md").contains("`true`"));
}

/// The command lines of hyperfine's README, verbatim but without their first word `hyperfine`.
const README: [&str; 14] = [
    "'sleep 0.3'",
    "--runs 5 'sleep 0.3'",
    "'hexdump file' 'xxd file'",
    "--warmup 3 'grep -R TODO *'",
    "--prepare 'sync; echo 3 | sudo tee /proc/sys/vm/drop_caches' 'grep -R TODO *'",
    "--prepare 'make clean' --parameter-scan num_threads 1 12 'make -j {num_threads}'",
    "--parameter-scan delay 0.3 0.7 -D 0.2 'sleep {delay}'",
    "-L compiler gcc,clang '{compiler} -O2 main.cpp'",
    "--shell zsh 'for i in {1..10000}; do echo test; done'",
    "-N 'grep TODO /home/user'",
    "--shell=bash my_function",
    "'my_function() { sleep 1; }; my_function'",
    "'. /tmp/my_alias.sh; my_alias'",
    "'sleep 0.3' --export-markdown out.md",
];

/// Runs `scruple run` with the arguments in `line` and a budget of 1 ms. Provides the programs and the bash function
/// that the README mentions.
fn run_line(place: &Place, line: &str) -> Answer {
    let words = shell_words::split(line).expect("words");
    let short = ["run", "--budget", "1ms"].into_iter();
    let mut command = place.command(short.chain(words.iter().map(String::as_str)));
    let path = std::env::var("PATH").expect("a path");
    command.env("PATH", format!("{}:{path}", place.file("bin").display()));
    command.env("BASH_FUNC_my_function%%", "() { sleep 1; }");
    place.finish(&mut command)
}

#[test]
fn every_line_of_its_readme_runs_word_for_word() {
    let place = Place::new();
    std::fs::create_dir(place.file("bin")).expect("a folder");
    for name in ["sleep", "hexdump", "xxd", "grep", "sync", "sudo", "make", "gcc", "clang"] {
        place.shell_script(&format!("bin/{name}"), "exit 0");
    }
    place.shell_script("bin/zsh", "exec bash \"$@\"");
    for line in README.iter().filter(|line| !line.contains("my_alias")) {
        let answer = run_line(&place, line);
        assert_eq!(answer.code, 0, "{line}: {}", answer.exchange());
    }
    assert!(place.read("out.md").contains("`sleep 0.3`"));
}

#[test]
fn an_alias_of_a_file_that_is_read_in_the_same_line_is_what_the_shell_makes_of_it() {
    let place = Place::new();
    place.write("my_alias.sh", "alias my_alias=\"sleep 0.01\"\n");
    let line = README.iter().find(|line| line.contains("my_alias")).expect("it is there");
    let file = place.file("my_alias.sh").display().to_string();
    let line = line.replace("/tmp/my_alias.sh", &file);
    let of_shell = std::process::Command::new("sh").args(["-c", &format!(". {file}; my_alias")]).output();
    let answer = run_line(&place, &line);
    match of_shell.expect("a shell").status.success() {
        true => assert_eq!(answer.code, 0, "{}", answer.exchange()),
        // Some shells parse a whole line before they define the alias in it.
        false => {
            assert_eq!(answer.code, 4, "{}", answer.exchange());
            assert!(answer.stderr.contains("exited with code 127"), "{}", answer.exchange());
        }
    }
}

#[test]
fn an_exported_function_is_a_command_of_its_shell() {
    let place = Place::new();
    let mut command = place.command(["run", "--time-only", "-r", "1", "--shell=bash", "my_function"]);
    let answer = place.finish(command.env("BASH_FUNC_my_function%%", "() { true; }"));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
}

#[test]
fn a_shell_that_was_not_requested_is_a_row_and_a_remark() {
    let place = Place::new();
    let answer = run(&place, &["-r", "1", "true | cat"]);
    assert!(answer.stdout.contains("(sh -c '')"), "{}", answer.exchange());
    assert!(answer.stdout.contains("uses ‘|’"), "{}", answer.exchange());
    let plain = run(&place, &["-r", "1", "true"]);
    assert!(!plain.stdout.contains("sh -c"), "{}", plain.exchange());
}

#[test]
fn only_the_named_exit_codes_are_ignored() {
    let place = Place::new();
    let answer = place.run(["run", "--time-only", "-r", "1", "-i=2,3", "false"]);
    assert_eq!(answer.code, 4, "{}", answer.exchange());
    let answer = place.run(["run", "--time-only", "-r", "1", "-i=two", "false"]);
    assert_eq!(answer.code, 2, "{}", answer.exchange());
}

#[test]
fn three_commands_are_ranked() {
    let timed = |cost: f64| {
        move |seed| {
            arm(1.0, seed).with("timing", "time.cpu", move |launch| cost * (1e6 + (launch * 37 % 11) as f64))
        }
    };
    let place = Place::new();
    let arms = [("slow", timed(2.0)(1)), ("fast", timed(1.0)(2)), ("alike", timed(1.0)(3))];
    let words =
        ["--no-store", "-r", "16", "--metrics", "time.cpu", "-n", "slow", "-n", "fast", "-n", "alike"];
    let words: Vec<&str> = words.iter().chain(&["true", "true", "true"]).copied().collect();
    let answer = place.play(&arms, &words);
    assert!(
        answer.stdout.contains("cannot be distinguished from ‘")
            && answer.stdout.contains("then ‘slow’ 2.00 × [2.00,"),
        "{}",
        answer.exchange()
    );
}

#[test]
fn results_are_written_in_the_shape_that_its_scripts_read() {
    let place = Place::new();
    let words = [
        "-r",
        "6",
        "-L",
        "n",
        "1,2",
        "--export-json",
        "out.json",
        "--hyperfine",
        "--label",
        "ours",
        "echo {n}",
    ];
    run(&place, &words);
    let page: serde_json::Value = serde_json::from_str(&place.read("out.json")).expect("JSON");
    let results = page["results"].as_array().expect("results");
    assert_eq!(results.len(), 2);
    let shown = place.run(["show", "ours", "--json"]).json();
    for (result, arm) in results.iter().zip(shown["arms"].as_array().expect("arms")) {
        let number = |key: &str| result[key].as_f64().unwrap_or_else(|| panic!("{key} of {result:#}"));
        let keys = ["mean", "stddev", "median", "user", "system", "min", "max"].map(number);
        assert!(keys.iter().all(|seconds| (0.0..60.0).contains(seconds)), "{result:#}");
        assert!(number("min") <= number("median") && number("median") <= number("max"));
        let times = result["times"].as_array().expect("times").iter().filter_map(serde_json::Value::as_f64);
        let readings = arm["metrics"]["time.wall"]["readings"].as_array().expect("readings");
        let readings = readings.iter().filter_map(serde_json::Value::as_f64).map(|reading| reading / 1e9);
        assert_eq!(times.collect::<Vec<_>>(), readings.collect::<Vec<_>>());
        assert_eq!(result["exit_codes"].as_array().map(Vec::len), Some(6));
    }
    assert_eq!((&results[1]["command"], &results[1]["parameters"]["n"]), (&"echo 2".into(), &"2".into()));
    // `store import` reads the file like one that hyperfine wrote.
    let again = place.run(["store", "import", "out.json"]);
    assert!(again.stdout.contains("2 benchmarks of hyperfine"), "{}", again.exchange());
    run(&place, &["-r", "6", "--export", "hyperfine:same.json", "true"]);
    assert!(place.read("same.json").contains("\"results\""));
}

#[test]
fn readings_of_two_levels_do_not_foretell_how_many_more_would_tell() {
    let place = Place::new();
    let command = |name: &str, times: [f64; 2]| {
        let times: Vec<f64> = (0..20).map(|at| times[usize::from(at % 3 == 0)]).collect();
        serde_json::json!({ "command": name, "times": times })
    };
    let results = [command("old", [0.0100, 0.0160]), command("new", [0.0162, 0.0099])];
    place.write("two.json", serde_json::json!({ "results": results }).to_string());
    assert_eq!(place.run(["store", "import", "two.json"]).code, 0);
    let shown = place.run(["show", "last"]);
    assert!(
        shown.unwrapped().contains("no reasonable number of readings would tell"),
        "{}",
        shown.exchange()
    );
}

#[test]
fn a_sentence_on_another_tools_results_counts_readings_and_not_blocks() {
    let place = Place::new();
    let times = |of: f64| (0..20).map(|at| of + f64::from(at) * 1e-6).collect::<Vec<f64>>();
    let command = |name: &str, of: f64| serde_json::json!({ "command": name, "times": times(of) });
    let results = [command("old", 0.01), command("new", 0.02)];
    place.write("both.json", serde_json::json!({ "results": results }).to_string());
    assert_eq!(place.run(["store", "import", "both.json"]).code, 0);
    let shown = place.run(["show", "last"]);
    assert!(shown.unwrapped().contains(" 20 readings)."), "{}", shown.exchange());
}
