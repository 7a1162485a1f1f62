//! Requests that cannot be met: each is one clear error before anything is measured.

use crate::programs::skip;
use crate::scripted_readings::arm;
use crate::support::Place;
use insta::assert_snapshot;
use std::os::unix::ffi::OsStrExt;

/// The error message of a request, which must be a usage error that measures nothing.
fn refusal(words: &[&str]) -> String {
    let place = Place::new();
    place.script(&[("true", arm(1.0, 1))]);
    let answer = place.run(["run", "--scripted", "script.json"].iter().chain(words));
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{words:?}: {}", answer.exchange());
    answer.stderr
}

#[test]
fn words_of_other_verbs_and_tools_lead_to_the_option_of_this_one() {
    let place = Place::new();
    for (verb, word, option) in [
        ("check", "--against", "--base"),
        ("compare", "--baseline", "--base"),
        ("check", "--threshold", "--margin"),
        ("load", "--check", "--expect"),
        ("load", "-k", "--trust"),
        ("bench", "--save-baseline", "--label"),
        ("run", "--save-baseline", "--label"),
        ("run", "--csv", "--export"),
    ] {
        let answer = place.run([verb, word, "main"]);
        assert_eq!(answer.code, 2);
        assert!(answer.stderr.contains(&format!("‘{option}’ does this here")), "{}", answer.exchange());
        assert!(!answer.stderr.contains("similar argument"), "{}", answer.exchange());
        let others = ["--against", "--baseline", "--threshold", "--base", "--margin"];
        let named = others.iter().filter(|name| answer.stderr.contains(&format!("{name} ")));
        assert_eq!(named.count(), 0, "{}", answer.exchange());
    }
}

#[test]
fn a_command_that_an_option_has_taken_as_its_value_is_named() {
    for words in [&["-L", "n", "echo {n}"][..], &["-u", "true"]] {
        let (error, last) = (refusal(words), words[words.len() - 1]);
        assert!(error.trim_end().ends_with(&format!("‘{last}’ is the value of an option here")), "{error}");
    }
}

#[test]
fn a_command_that_stands_where_a_verb_belongs_is_answered_with_run() {
    let answer = Place::new().run(["sleep 1"]);
    assert_eq!(answer.code, 2);
    assert!(answer.stderr.contains("`scruple run` weighs commands"), "{}", answer.exchange());
}

#[test]
fn an_unknown_option_is_not_said_to_be_a_word_of_the_command() {
    for words in [&["--unknown", "true"][..], &["--memories", "true"]] {
        let text = refusal(words);
        assert!(text.contains(words[0]) && !text.contains("-- --"), "{text}");
    }
}

#[test]
fn a_number_that_is_not_possible_is_answered_with_what_to_write() {
    for words in [&["-r", "-3", "true"][..], &["--budget", "-3s", "true"], &["--budget", "-.5s", "true"]] {
        let text = refusal(words);
        assert!(text.contains("it cannot be negative") && !text.contains("-- -"), "{text}");
    }
    let text = refusal(&["-r=-3", "true"]);
    assert!(text.contains("give a whole number, such as 30"), "{text}");
}

#[test]
fn json_with_a_file_is_told_how_files_are_written() {
    let text = refusal(&["--json=out.json", "true"]);
    assert!(text.contains("‘--export FILE.json’ writes JSON to a file"), "{text}");
}

#[test]
fn a_folder_is_not_a_store() {
    let place = Place::new();
    for words in [&["run", "--store", ".", "true"][..], &["store", "list", "--store", "."]] {
        let answer = place.run(words);
        assert_eq!(answer.code, 2, "{}", answer.exchange());
        let expected = "error: ‘.’ is not a store (it is a folder): name another file with --store FILE";
        assert!(answer.stderr.starts_with(expected), "{}", answer.exchange());
    }
}

#[test]
fn a_store_that_stands_as_an_argument_is_answered_with_the_option() {
    let place = Place::new();
    place.write("results", "");
    place.write("bench", "#!/bin/sh\n");
    for (words, store) in [
        (&["store", "check", "old.db"][..], "--store old.db"),
        (&["store", "check", "results"], "--store results"),
        (&["store", "list", "--json", "postgres://host/runs"], "--store postgres://host/runs"),
    ] {
        let answer = place.run(words);
        assert_eq!(answer.code, 2, "{}", answer.exchange());
        assert!(answer.stderr.contains(&format!("‘{store}’ names a store")), "{}", answer.exchange());
    }
    assert!(!place.run(["store", "check", "other"]).stderr.contains("--store"), "not a store");
    let program = place.run(["bench", "bench"]).stderr;
    assert!(program.contains("after ‘--’") && !program.contains("--store"), "{program}");
}

#[test]
fn a_program_in_the_place_of_a_run_is_answered_with_the_verb_that_weighs_it() {
    let place = Place::new();
    place.script(&[("true", arm(1.0, 1))]);
    assert_eq!(place.run(["run", "--scripted", "script.json", "true"]).code, 0);
    let answer = place.run(["compare", "/bin/sh", "/bin/cat"]);
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    assert!(
        answer.stderr.contains("‘/bin/sh’") && answer.stderr.contains("`scruple run`"),
        "{}",
        answer.exchange()
    );
}

#[test]
fn an_unknown_option_is_answered_with_where_it_belongs() {
    let place = Place::new();
    for (words, advice) in [
        (&["run", "--slo", "p99<20ms", "true"][..], "‘--slo’ is an option of scruple load"),
        (&["show", "--margin=2%"], "‘--margin’ is an option of scruple run, scruple bench and others"),
        (&["--store", "a.db", "run", "true"], "‘--store’ stands after the command: scruple run --store"),
        (&["run", "ls", "-l"], "quote it with its options, as in ‘PROGRAM -l’"),
        (&["report", "--format", "html"], "‘--export’ does this here"),
        (&["check", "./old", "./new"], "‘scruple check run A B’"),
        (&["check", "main"], "‘--base BRANCH’ names a branch"),
        (&["run", "--timeout", "5s", "true"], "‘--time-limit’ does this here"),
        (&["diff", "a", "b"], "‘compare’ does this here"),
        (&["show", "--qqq"], "`scruple show -h` lists the options"),
        (&["load", "--latency", ":8080"], "`scruple load -h` lists the options"),
        (&["load", "--script", "a.lua", ":8080"], "`scruple load -h` lists the options"),
        (&["--qqq"], "`scruple -h` lists the options"),
        (&["run", "--bugdet", "3s", "true"], "a similar argument exists: '--budget'"),
    ] {
        let answer = place.run(words);
        assert_eq!(answer.code, 2, "{}", answer.exchange());
        assert!(answer.stderr.contains(advice), "{}", answer.exchange());
        assert!(!answer.stderr.contains("as a value"), "{}", answer.exchange());
    }
}

#[test]
fn a_former_option_is_answered_with_the_present_one() {
    let place = Place::new();
    for (words, present) in [
        (&["report", "-o", "page.html"][..], "`scruple report -o` is now `scruple report --export`"),
        (&["report", "--output=page.html"], "`scruple report --output` is now `scruple report --export`"),
        (&["store", "export", "--output", "a.csv"], "is now `scruple store export --export`"),
        (&["history", "v1..v2", "--check", "make"], "is now `scruple history --check-with`"),
        (&["load", ":1", "--warm-up", "off"], "`scruple load --warm-up` is now `scruple load --warmup`"),
        (&["inspect", "ghc", "heap", "a.hp", "--top", "3"], "is now `scruple inspect ghc heap --most`"),
    ] {
        let answer = place.run(words);
        assert_eq!(answer.code, 2, "{}", answer.exchange());
        assert!(answer.stderr.contains(present), "{}", answer.exchange());
    }
}

#[test]
fn bytes_that_are_not_text_are_a_path_like_others() {
    let place = Place::new();
    place.script(&[("true", arm(1.0, 1))]);
    let store = std::ffi::OsStr::from_bytes(b"s\xff.db");
    let words = ["run", "--scripted", "script.json", "true", "--store"].map(std::ffi::OsStr::new);
    let mut run = place.command(words);
    let answer = place.finish(run.arg(store));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(place.path().join(store).exists());
}

#[test]
fn a_home_that_is_empty_is_none() {
    let place = Place::new();
    let mut run = place.command(["run", "true"]);
    let answer = place.finish(run.env("HOME", "").env_remove("XDG_DATA_HOME").env_remove("SCRUPLE_STORE"));
    assert_snapshot!(answer.exchange(), @"
    exit 2
    --- stderr
    error: neither XDG_DATA_HOME nor HOME is set to an absolute path: set one, or name a store with --store FILE
    ");
}

#[test]
fn a_command_that_is_not_text_is_refused_with_a_way_to_weigh_it() {
    let place = Place::new();
    let words = ["run", "-r", "2", "--time-only"].map(std::ffi::OsStr::new);
    let mut run = place.command(words);
    let refused = place.finish(run.arg(std::ffi::OsStr::from_bytes(b"/bin/echo \xc3\xa9\xff\x80y")));
    assert_snapshot!(refused.exchange(), @r"
    exit 2
    --- stderr
    error: ‘/bin/echo é\xff\x80y’ is not UTF-8: names, patterns and commands must be, and only paths may have other bytes. Write such a command into a file, and weigh ‘sh FILE’
    ");
    std::fs::write(place.file("job.sh"), b"echo \xc3\xa9\xff\x80y\n").expect("a script");
    let answer = place.run(["run", "-r", "2", "--time-only", "sh job.sh"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
}

#[test]
fn programs_that_cannot_be_run() {
    let place = Place::new();
    place.write("plain.txt", "hello");
    let text = |command: &str| place.run(["run", command]).exchange();
    assert_snapshot!(text("no-such-program --at all"), @r"
    exit 2
    --- stderr
    error: cannot weigh ‘no-such-program --at all’: there is no program ‘no-such-program’ on the search path: check the spelling, or give its path
    ");
    assert_snapshot!(text("./no-such-file"), @r"
    exit 2
    --- stderr
    error: cannot weigh ‘./no-such-file’: there is no file ‘./no-such-file’
    ");
    assert_snapshot!(text("./plain.txt"), @r"
    exit 2
    --- stderr
    error: cannot weigh ‘./plain.txt’: ‘./plain.txt’ is not executable: `chmod +x` makes it so, or name its interpreter
    ");
    assert_snapshot!(text("/"), @r"
    exit 2
    --- stderr
    error: cannot weigh ‘/’: ‘/’ is a folder: name a program in it
    ");
    assert!(!place.file("store.db").exists(), "nothing was measured, so nothing is stored");
}

#[test]
fn commands_that_are_empty_or_missing() {
    assert_snapshot!(refusal(&[""]), @r"error: an empty command cannot be weighed: name a program");
    assert_snapshot!(refusal(&["true 'open"]), @r"error: ‘true 'open’ has a quote that does not end: close it");
    assert_snapshot!(refusal(&["-N", "sort < big.txt"]), @r"error: ‘sort < big.txt’ uses ‘<’, which only a shell understands: quote it, or run it in a shell: sh -c 'COMMAND' (with `scruple run`, -S sh does that and shows what the shell costs)");
    assert_snapshot!(refusal(&["-N", "LANG=C sort"]), @r"error: ‘LANG=C sort’ uses ‘LANG=C’ before the program (or name it through `env`), which only a shell understands: quote it, or run it in a shell: sh -c 'COMMAND' (with `scruple run`, -S sh does that and shows what the shell costs)");
}

#[test]
fn an_empty_variable_is_named_and_not_the_option_that_it_stands_for() {
    let place = Place::new();
    let with_variable = |words: &[&str]| {
        let answer = place.finish(place.command(words).env("SCRUPLE_STORE", ""));
        assert_eq!(answer.code, 2, "{}", answer.exchange());
        answer.stderr
    };
    assert_snapshot!(with_variable(&["store", "list"]), @r"error: the variable SCRUPLE_STORE is empty: unset it, or set it to a file or to postgres://USER@HOST/DATABASE");
    assert!(with_variable(&["store", "list", "--store", ""]).contains("'--store <STORE>'"));
}

#[test]
fn metrics_that_do_not_exist() {
    assert_snapshot!(refusal(&["--metrics", "time.cpuu", "true"]), @r"error: there is no metric ‘time.cpuu’: did you mean ‘time.cpu’?");
}

#[test]
fn a_misspelt_command_and_a_number_in_words_are_answered_with_what_to_write() {
    let place = Place::new();
    let errors = |words: &[&str]| {
        let answer = place.run(words);
        assert_eq!(answer.code, 2, "{}", answer.exchange());
        answer.stderr
    };
    assert!(errors(&["rn", "true"]).contains("the most similar command is ‘run’"), "{}", errors(&["rn"]));
    assert!(errors(&["chk"]).contains("the most similar command is ‘check’"), "{}", errors(&["chk"]));
    assert!(errors(&["rnu", "true"]).contains("the most similar command is ‘run’"), "{}", errors(&["rnu"]));
    assert!(errors(&["sotre"]).contains("the most similar command is ‘store’"), "{}", errors(&["sotre"]));
    assert!(errors(&["bisect"]).contains("‘history bisect’ is a command"), "{}", errors(&["bisect"]));
    assert!(!errors(&["frobnicate"]).contains("similar"), "{}", errors(&["frobnicate"]));
    for words in [&["inspect", "memory", "./app", "9"][..], &["bench", "./app"], &["load", "./server"]] {
        assert!(errors(words).contains("after ‘--’"), "{}", errors(words));
    }
    assert!(!errors(&["show", "--frob"]).contains("after ‘--’"));
    let number = errors(&["run", "-r", "ten", "true"]);
    assert!(number.contains("give a whole number"), "{number}");
}

#[test]
fn a_farm_with_hosts_and_no_kind_is_refused_and_not_ignored() {
    let place = Place::new();
    place.write("scruple.toml", "[farm]\nhosts = ['one', 'two']\n");
    assert_snapshot!(place.run(["run", "-r", "1", "true"]).exchange(), @r#"
    exit 2
    --- stderr
    error: [farm] names nodes but has no kind: write kind = "ssh" or kind = "slurm"
    "#);
}

#[test]
fn limits_that_mean_nothing() {
    assert_snapshot!(refusal(&["--limit", "time.cpu<3parsecs", "true"]), @r"error: in the limit ‘time.cpu<3parsecs’: ‘parsecs’ is not a unit of time: write for instance ‘20 ms’");
    assert_snapshot!(refusal(&["--limit", "malloc.bytes", "true"]), @r"error: ‘malloc.bytes’ is not a limit: expected METRIC<VALUE, such as ‘malloc.bytes<4MB’ or ‘time.cpu<+3%’");
    assert_snapshot!(refusal(&["--limit", "malloc.byte<4MB", "true"]), @r"error: there is no metric ‘malloc.byte’ in the limit ‘malloc.byte<4MB’: did you mean ‘malloc.bytes’?");
    assert_snapshot!(refusal(&["--limit", "malloc.bytes<4ms", "true"]), @r"error: in the limit ‘malloc.bytes<4ms’: ‘ms’ is not a unit of bytes: write for instance ‘4 MB’");
    assert_snapshot!(refusal(&["--limit", "malloc.bytes<+x%", "true"]), @r"error: in the limit ‘malloc.bytes<+x%’: ‘+x%’ is not a change: write for instance ‘+3%’");
    assert_snapshot!(refusal(&["--limit", "time.cpu<-3%", "true"]), @"error: the limit ‘time.cpu<-3%’ is a change, and there is only one command: write the one to compare with before it, or limit the amount (time.cpu<20ms)");
    assert_snapshot!(refusal(&["--limit", "time.cpu<+3ms", "true"]), @r"error: in the limit ‘time.cpu<+3ms’: ‘+3ms’ is a change, but no percentage: write for instance ‘+3%’, or an amount without a sign");
    assert_snapshot!(refusal(&["--limit", "mallocs<10", "true"]), @r"error: there is no metric ‘mallocs’ in the limit ‘mallocs<10’: did you mean ‘malloc.count’?");
    assert_snapshot!(refusal(&["--limit", "treu:malloc.bytes<1", "true"]), @r"error: the limit ‘treu:malloc.bytes<1’ is for ‘treu’, but there is no such arm: there are ‘true’");
}

#[test]
fn margins_that_are_invalid() {
    for margin in ["0", "-1%", "100%", "two", "nan"] {
        let text = refusal(&[&format!("--margin={margin}"), "true"]);
        assert_eq!(
            text,
            format!("error: ‘{margin}’ is not a margin: give a share between 0 and 100 %, such as 2%\n")
        );
    }
}

#[test]
fn numbers_of_blocks_that_are_invalid() {
    assert_snapshot!(refusal(&["-r", "0", "true"]), @r"error: zero launches cannot be measured: give -r or -M at least 1");
    assert_snapshot!(refusal(&["-m", "20", "-M", "10", "true"]), @r"error: -m asks for more blocks than -M allows: raise -M or lower -m");
    assert!(refusal(&["-r", "-3", "true"]).contains("unexpected argument '-3'"));
    assert!(refusal(&["-r", "5", "-m", "3", "true"]).contains("cannot be used with"));
}

#[test]
fn times_that_are_invalid() {
    assert_snapshot!(refusal(&["--budget", "soon", "true"]), @r"error: ‘soon’ is not a duration: give one of more than zero in ns, us, ms, s, min or h, such as 60s or 1.5min");
    assert_snapshot!(refusal(&["--budget", "0", "true"]), @r"error: ‘0’ is not a duration: give one of more than zero in ns, us, ms, s, min or h, such as 60s or 1.5min");
    assert_snapshot!(refusal(&["--time-limit", "3 MB", "true"]), @r"error: ‘3 MB’ is not a duration: give one of more than zero in ns, us, ms, s, min or h, such as 60s or 1.5min");
}

#[test]
fn inputs_that_are_not_there() {
    assert_snapshot!(refusal(&["--input", "nothing.txt", "true"]), @r"error: cannot read the input ‘[place]/nothing.txt’: No such file or directory (os error 2); name a file that can be read");
    assert_snapshot!(refusal(&["--input", "pipe:nothing.txt", "true"]), @r"error: cannot read the input ‘[place]/nothing.txt’: No such file or directory (os error 2); name a file that can be read");
}

#[test]
fn exports_that_cannot_be_written() {
    assert_snapshot!(refusal(&["--export-json", "no/such/folder.json", "true"]), @r"error: cannot write ‘no/such/folder.json’: No such file or directory (os error 2); name another file, whose folder exists and is writable");
    assert_snapshot!(refusal(&["--export-csv", "/", "true"]), @r"error: cannot write ‘/’: Is a directory (os error 21); name another file, whose folder exists and is writable");
}

#[test]
fn outputs_that_cannot_be_written() {
    assert_snapshot!(refusal(&["--output", "no/such/folder.txt", "true"]), @r"error: cannot write ‘[place]/no/such/folder.txt’: No such file or directory (os error 2); name another file, whose folder exists and is writable");
}

#[test]
fn parameters_that_do_not_fit() {
    assert_snapshot!(refusal(&["-P", "n", "1", "ten", "true {n}"]), @r"error: ‘ten’ is not a number: -P takes a name and two numbers");
    assert_snapshot!(refusal(&["-P", "n", "10", "1", "true {n}"]), @r"error: cannot go from 10 to 1 in steps of 1: the step must be positive, the end not before the start, and there may be at most 10,000 steps");
    assert_snapshot!(refusal(&["-P", "n", "1", "2", "-L", "n", "3,4", "true {n}"]), @r"error: the parameter ‘n’ was given twice: name each once");
    assert_snapshot!(refusal(&["-L", "a", "1,2", "true {b}"]), @r"error: the parameter ‘a’ is used in no command: write {a} where its value is to go");
    assert_snapshot!(refusal(&["-D", "2", "true {n}"]), @r"
    error: the following required arguments were not provided:
      --parameter-scan <VAR> <MIN> <MAX>

    Usage: scruple run --parameter-scan <VAR> <MIN> <MAX> --parameter-step-size <STEP> --store <STORE> <COMMAND>...

    For more information, try '--help'.
    ");
}

#[test]
fn hooks_and_names_that_do_not_fit_the_commands() {
    assert_snapshot!(refusal(&["-p", "true", "-p", "true", "true"]), @r"error: --prepare was given 2 times for 1 command: give it once, or once for each command");
    assert_snapshot!(refusal(&["-n", "a", "-n", "b", "true"]), @r"error: 2 names were given with -n for 1 command: leave some out");
    assert_snapshot!(refusal(&["-n", " ", "true"]), @r"error: a name that -n gives is empty: give one that a table can show");
}

#[test]
fn cores_that_do_not_exist() {
    assert_snapshot!(refusal(&["--shield=first", "true"]), @r"error: ‘first’ is not a core’s number: write --shield=0,1");
    assert_snapshot!(refusal(&["--shield=999999", "true"]), @r"error: there is no core 999999 on this machine: `lscpu` lists them");
}

#[test]
fn stores_that_are_not_supported() {
    assert_snapshot!(refusal(&["--store", "mysql://somewhere/else", "true"]), @r"error: the store ‘mysql://somewhere/else’ cannot be used: mysql is not supported; name a file, such as sqlite:.scruple/store.db, or a database, such as postgres://host/database");
}

#[test]
fn scripts_that_do_not_fit() {
    let place = Place::new();
    place.write("script.json", "{\"arms\": {}}");
    let answer = place.run(["run", "--no-store", "--scripted", "script.json", "-r", "16", "true"]);
    assert_snapshot!(answer.exchange(), @r"
    exit 2
    --- stderr
    error: cannot weigh ‘true’: the script has no memory launches of ‘true’
    ");
    place.write("script.json", "{\"army\": {}}");
    let answer = place.run(["run", "--no-store", "--scripted", "script.json", "-r", "16", "true"]);
    assert_snapshot!(answer.exchange(), @r"
    exit 2
    --- stderr
    error: ‘script.json’ is not a script of readings: unknown field `army`, expected `arms` at line 1 column 7
    ");
}

#[test]
fn standard_output_that_cannot_be_written() {
    let place = Place::new();
    place.script(&[("true", arm(1.0, 1))]);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let mut command = place.command(["run", "--scripted", "script.json", "-r", "16", "true"]);
    let answer = place.finish(command.stdout(full));
    assert_snapshot!(answer.exchange(), @r"
    exit 2
    --- stderr
    error: cannot write to standard output: No space left on device (os error 28)
    ");
    assert!(place.run(["show"]).stdout.contains("10 blocks"), "what was measured is kept");
}

#[test]
fn files_in_formats_that_are_not_written() {
    assert_snapshot!(refusal(&["--export", "out.svg", "true"]), @"error: cannot export ‘out.svg’: this verb writes .json, .csv, .md, .adoc, .org, .html, .xml, .hyperfine");
    assert_snapshot!(refusal(&["--export", "out.txt", "true"]), @"error: cannot export ‘out.txt’: this verb writes .json, .csv, .md, .adoc, .org, .html, .xml, .hyperfine");
    assert_snapshot!(refusal(&["--export", "out", "true"]), @r#"
    error: invalid value 'out' for '--export <FILE>': it names no format: write FILE.json, or FORMAT:FILE such as json:- for standard output

    For more information, try '--help'.
    "#);
}

#[test]
fn former_names_of_verbs_answer_with_the_new_ones() {
    let place = Place::new();
    for (old, new) in [("list", "store list"), ("import", "store import"), ("ghc", "inspect ghc")] {
        let answer = place.run([old, "--json"]);
        let text = format!("error: `scruple {old}` is now `scruple {new}`\n");
        assert_eq!((answer.code, answer.stdout.as_str(), answer.stderr), (2, "", text));
    }
}

#[test]
fn every_verb_has_a_manual_page_that_a_reader_of_pages_understands() {
    let place = Place::new();
    let answer = place.run(["completions", "--man", "man"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    for name in ["scruple.1", "scruple-run.1", "scruple-report.1", "scruple-store-list.1"] {
        let text = place.read(&format!("man/{name}"));
        assert!(text.contains(".SH NAME") && text.contains(".SH OPTIONS"), "{name}: {text}");
    }
    let Ok(groff) = std::process::Command::new("groff").arg("--version").output() else {
        return skip("groff is not installed");
    };
    assert!(groff.status.success());
    for entry in std::fs::read_dir(place.file("man")).expect("a folder").flatten() {
        let mut words = std::process::Command::new("groff");
        let output = words
            .args(["-man", "-Kutf8", "-ww", "-z", "-Tutf8"])
            .arg(entry.path())
            .output()
            .expect("it starts");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && text.is_empty(), "{}: {text}", entry.path().display());
    }
    let nowhere = place.run(["completions", "--man", "/proc/nowhere"]);
    assert_eq!(nowhere.code, 2, "{}", nowhere.exchange());
    let neither = place.run(["completions"]);
    assert_eq!(neither.code, 2, "{}", neither.exchange());
}

#[test]
fn every_shell_has_completions() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let answer = place.run(["completions", shell]);
        assert!(answer.code == 0 && answer.stdout.contains("report"), "{}", answer.exchange());
    }
    let script = place.run(["completions", "bash"]).stdout;
    for hidden in ["burn", "--hyperfine", "--color", "--scripted"] {
        assert!(!script.contains(hidden), "{hidden}, which the help does not show, is offered");
    }
    let zsh = place.run(["completions", "zsh"]).stdout;
    let of_history = zsh.split("\n(history)\n").nth(1).expect("a part for the verb");
    let first_word = of_history.lines().find(|line| line.starts_with("'::")).expect("a word");
    assert!(first_word.contains("(bisect extend accept status report clean)"), "{first_word}");
    let of_history = of_history.split("\n;;").next().expect("its part");
    assert!(
        !of_history.contains("_history_commands"),
        "the verbs are offered behind all words: {of_history}"
    );
    let checked = std::process::Command::new("bash").arg("-n").arg(place.write("of-bash", &script)).output();
    let checked = checked.expect("bash is there");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
