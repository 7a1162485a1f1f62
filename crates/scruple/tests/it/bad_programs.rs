//! Programs that cannot be started, that die, or that write output without end.

use crate::programs::skip;
use crate::support::{Answer, Place};
use insta::assert_snapshot;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

fn run(place: &Place, words: &[&str]) -> Answer {
    place.run(["run", "--no-store", "-r", "2"].iter().chain(words))
}

#[test]
fn a_script_without_an_interpreter_cannot_be_executed() {
    let place = Place::new();
    place.executable("script", "echo hello\n");
    assert_snapshot!(run(&place, &["./script"]).exchange(), @r"
    exit 2
    --- stderr
    error: cannot weigh ‘./script’: cannot start ‘[place]/./script’: cannot execute the file: Exec format error (os error 8); it is neither a program for this machine nor a script with a #! line: give it one, or name its interpreter
    ");
    assert_eq!(run(&place, &["-S", "sh", "./script"]).code, 0, "a shell runs it nevertheless");
}

#[test]
fn a_script_whose_interpreter_is_not_there_cannot_be_executed() {
    let place = Place::new();
    place.executable("script", "#!/no/such/interpreter\n");
    assert_snapshot!(run(&place, &["./script"]).exchange(), @r"
    exit 2
    --- stderr
    error: cannot weigh ‘./script’: cannot start ‘[place]/./script’: cannot execute the file: No such file or directory (os error 2); the interpreter or loader that it names is not there
    ");
}

#[test]
fn a_program_that_removes_itself_is_missing_and_not_its_interpreter() {
    let place = Place::new();
    place.shell_script("once", "rm \"$0\"");
    let answer = run(&place, &["./once"]);
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    assert_snapshot!(answer.stderr, @"
    error: cannot weigh ‘./once’: cannot start ‘[place]/./once’: cannot execute the file: No such file or directory (os error 2); it was there before: find out what removes it, such as a previous launch
    ");
}

/// Go and GHC print the message first, and then a stack of any length.
#[test]
fn the_message_above_a_long_stack_is_reported() {
    let place = Place::new();
    let frames = "i=0; while [ $i -lt 2000 ]; do printf 'main.f(...)\\n\\t/f.go:1\\n'; i=$((i+1)); done";
    place.shell_script("panics", &format!("{{ echo 'panic: nil map'; {frames}; }} >&2; exit 2"));
    let answer = run(&place, &["./panics"]);
    assert_eq!(answer.code, 4, "{}", answer.exchange());
    assert!(answer.stderr.contains("its error output:\n    panic: nil map\n"), "{}", answer.exchange());
    assert!(answer.stderr.lines().count() < 20, "{}", answer.exchange());
}

#[test]
fn a_program_that_fails_or_is_killed_is_reported_with_its_last_output() {
    let place = Place::new();
    place.shell_script("fails", "echo it is all wrong >&2; exit 3");
    place.shell_script("dies", "kill -SEGV $$");
    assert_snapshot!(run(&place, &["./fails"]).exchange(), @r"
    exit 4
    --- stderr
    error: ‘./fails’ exited with code 3 in the memory pass (-i measures it regardless); its error output:
        it is all wrong
    ");
    assert_snapshot!(run(&place, &["./dies"]).exchange(), @r"
    exit 4
    --- stderr
    error: ‘./dies’ was ended by signal 11 (SIGSEGV) in the memory pass (-i measures it regardless, and --show-output shows what it prints)
    ");
    let answer = run(&place, &["-i", "./fails", "./dies"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(answer.stdout.contains("! ‘./fails’ exited with code 3"), "{}", answer.stdout);
    assert!(answer.stdout.contains("! ‘./dies’ was ended by signal 11 (SIGSEGV)"), "{}", answer.stdout);
}

#[test]
fn a_program_that_fails_later_does_not_undo_what_was_measured() {
    let place = Place::new();
    place.shell_script("tires", "echo x >> log; test $(wc -l < log) -lt 18");
    let answer = place.run(["run", "-r", "20", "--metrics", "time.cpu", "./tires"]);
    assert_eq!(answer.code, 4, "{}", answer.exchange());
    assert!(answer.stdout.starts_with("1 command · 8 blocks"), "{}", answer.stdout);
    assert_eq!(
        answer.stderr,
        "error: ‘./tires’ exited with code 1 in the timing pass (-i measures it regardless, and --show-output shows what it prints)\n"
    );
    assert!(place.run(["show"]).stdout.starts_with("1 command · 8 blocks"));
    assert!(place.run(["store", "list"]).stdout.contains("./tires (failed)"));
}

#[test]
fn a_program_that_prints_without_end_is_read_without_being_kept() {
    let place = Place::new();
    let scruple = place.command(["run", "--no-store", "-r", "2", "-S", "sh", "yes | head -c 200M"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -v 120000 && exec \"$0\" \"$@\""]);
    limited.arg(scruple.get_program()).args(scruple.get_args()).current_dir(place.path());
    limited.env("XDG_CACHE_HOME", place.file("cache"));
    // glibc reserves 64 MB of addresses for each thread that allocates while another does.
    limited.env("MALLOC_ARENA_MAX", "1");
    let answer = Answer::of(limited.output().expect("sh runs"), place.path());
    assert_eq!(answer.code, 0, "{}", answer.exchange());
}

#[test]
fn a_program_that_prints_and_never_ends_is_ended_by_its_time_limit() {
    let place = Place::new();
    let answer = run(&place, &["--time-limit", "200ms", "yes"]);
    assert_snapshot!(answer.exchange(), @r"
    exit 4
    --- stderr
    error: ‘yes’ exceeded its time limit and was ended in the memory pass
    ");
    place.assert_no_processes();
}

#[test]
fn a_folder_to_work_in_is_needed() {
    let place = Place::new();
    let mut command = place.command(["run", "--no-store", "-r", "1", "true"]);
    command.env("XDG_CACHE_HOME", "/proc/nowhere").env("TMPDIR", "/proc/nowhere");
    let user = std::fs::metadata(place.path()).expect("the place").uid();
    let named = |answer: Answer| {
        answer.exchange().replace(&format!("scruple-cache-{user}’"), "scruple-cache-[user]’")
    };
    assert_snapshot!(named(place.finish(&mut command)), @r"
    exit 2
    --- stderr
    error: there is no folder to work in (‘/proc/nowhere/scruple-cache-[user]’: No such file or directory (os error 2)): set XDG_CACHE_HOME or TMPDIR to a writable one
    ");
    let mut command = place.command(["run", "--no-store", "-r", "1", "true"]);
    command.env("XDG_CACHE_HOME", "/proc/nowhere").env("TMPDIR", place.path());
    assert_eq!(place.finish(&mut command).code, 0, "the temporary folder serves where there is no cache");

    // A relative TMPDIR would be another folder in each working folder, and an empty one is none.
    for folder in ["", "relative"] {
        std::fs::create_dir_all(place.file("relative")).expect("a folder");
        let before = std::fs::read_dir(place.path()).expect("the place").count();
        let mut command = place.command(["run", "--no-store", "-r", "1", "true"]);
        command.env("XDG_CACHE_HOME", "/proc/nowhere").env("TMPDIR", folder);
        assert_eq!(place.finish(&mut command).code, 0);
        assert_eq!(std::fs::read_dir(place.path()).expect("the place").count(), before);
        assert_eq!(std::fs::read_dir(place.file("relative")).expect("a folder").count(), 0);
    }

    // Any user may create a name in the folder for temporary files, so a link with our folder's name is not followed.
    let ours = place.file(&format!("scruple-cache-{user}"));
    std::fs::remove_dir_all(&ours).expect("the folder of this user, and of no other");
    std::os::unix::fs::symlink(place.file("cache"), &ours).expect("a link");
    let mut command = place.command(["run", "--no-store", "-r", "1", "true"]);
    command.env_remove("XDG_CACHE_HOME").env_remove("HOME").env("TMPDIR", place.path());
    assert_snapshot!(named(place.finish(&mut command)), @r"
    exit 2
    --- stderr
    error: there is no folder to work in (‘[place]/scruple-cache-[user]’: is a symbolic link): set XDG_CACHE_HOME or TMPDIR to a writable one
    ");
}

#[test]
fn too_few_open_files_are_an_error_that_says_how_to_allow_more() {
    let place = Place::new();
    let scruple = place.command(["run", "--no-store", "-r", "2", "true"]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 8 && exec \"$0\" \"$@\""]);
    limited.arg(scruple.get_program()).args(scruple.get_args()).current_dir(place.path());
    limited.env("XDG_CACHE_HOME", place.file("cache"));
    let answer = Answer::of(limited.output().expect("sh runs"), place.path());
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    assert!(
        answer.stderr.contains("(os error 24; allow more of them: ulimit -n 1024)"),
        "{}",
        answer.exchange()
    );
}

#[test]
fn figures_of_processes_are_absent_where_proc_shows_another_namespace() {
    let place = Place::new();
    let scruple = place.command(["run", "--no-store", "-r", "2", "true"]);
    let in_namespace = |program: &std::ffi::OsStr| {
        let mut command = Command::new("unshare");
        command.arg("-rmpf").arg(program).current_dir(place.path());
        command.env("XDG_CACHE_HOME", place.file("cache"));
        command
    };
    if !in_namespace("true".as_ref()).output().is_ok_and(|output| output.status.success()) {
        return skip("no namespace of processes can be made here");
    }
    let output = in_namespace(scruple.get_program()).args(scruple.get_args()).output();
    let answer = Answer::of(output.expect("unshare runs"), place.path());
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let reason = "absent, because /proc shows the processes of another namespace; mount it for this one";
    assert!(answer.unwrapped().contains(reason), "{}", answer.exchange());
}

#[test]
fn a_line_end_in_a_name_does_not_split_a_message() {
    let place = Place::new();
    for words in [
        ["show", "x", "--store", "a\nb/none"],
        ["store", "import", "a\nb", "--no-store"],
        ["history", "--repo", "a\nb", "HEAD"],
        ["inspect", "calls", "a\nb", "c"],
    ] {
        let answer = place.run(words);
        assert_eq!(answer.code, 2, "{}", answer.exchange());
        assert!(!answer.stderr.contains("a\nb"), "{}", answer.exchange());
    }
}
