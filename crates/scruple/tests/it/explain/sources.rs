//! `scruple explain` on subjects other than two commands: stored runs, cases, servers; and the details of the first
//! row.

use crate::explain::{adds_up, build, difference, explain, first, pair, source};
use crate::instructions::bench_program;
use crate::load::planted::SERVER;
use crate::programs::has_valgrind;
use crate::repository::Repository;
use crate::support::{Place, at, free_port};

const CALL: &str = "all += hash(text, 5);";

#[test]
fn lines_and_machine_code_of_the_first_row_are_shown_where_that_is_asked_for() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let dearer = source(22, CALL, "hash").replace("hash *= 16777619u;", "hash *= 16777619u; hash += i;");
    pair(&place, &source(20, CALL, "hash"), &dearer);
    let page = explain(&place, &["--lines", "./old", "./new"]).json();
    let code = at(&page, "/explain/code");
    assert_eq!(code["function"], "hash", "{code:#}");
    let line = &code["lines"][0];
    assert!(line["text"].as_str().is_some_and(|text| text.contains("hash *= 16777619u")), "{code:#}");
    let instructions = code["instructions"].as_array().expect("instructions");
    let more = instructions.iter().filter(|one| one["mark"] == "+");
    assert!(more.clone().any(|one| one["executed"][1].as_u64() >= Some(2000 * 22 * 5)), "{code:#}");
    let text = place.run(["explain", "--no-time", "--lines", "./old", "./new"]);
    assert!(
        text.stdout.contains("machine code of hash") && text.stdout.contains("line of hash"),
        "{}",
        text.exchange()
    );
    let unasked = place.run(["explain", "--no-time", "./old", "./new"]);
    assert!(!unasked.stdout.contains("machine code"), "{}", unasked.exchange());
}

#[test]
fn stored_runs_are_counted_again_or_taken_from_what_was_kept_with_them() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    pair(&place, &source(20, CALL, "hash"), &source(22, CALL, "hash"));
    for (label, program) in [("monday", "./old"), ("tuesday", "./new")] {
        let words = ["run", "-r", "2", "--time-only", "--label", label, "-n", "app", program];
        let answer = place.run(words);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
    }
    let now = explain(&place, &["monday", "tuesday"]);
    adds_up(&now);
    assert_eq!(first(&now).0, "hash", "{}", now.exchange());
    let kept = place.run(["explain", "--keep", "monday"]);
    assert_eq!(kept.code, 0, "{}", kept.exchange());
    assert!(kept.stdout.contains("the call trees of ‘app’"), "{}", kept.exchange());
    // The first program was replaced, but the stored call tree is still that of the stored run.
    build(&place, "old", &source(30, CALL, "hash"));
    let later = explain(&place, &["monday", "tuesday"]);
    assert_eq!(first(&later), first(&now), "{}", later.exchange());
    build(&place, "new", &source(30, CALL, "hash"));
    let gone = place.run(["explain", "monday", "tuesday"]);
    assert_eq!(gone.code, 2, "{}", gone.exchange());
    assert!(
        gone.stderr.contains("is another program than when the run ‘tuesday’ was taken"),
        "{}",
        gone.exchange()
    );
    let copied = place.run(["store", "copy", "store.db", "copy.db"]);
    assert_eq!(copied.code, 0, "{}", copied.exchange());
    let elsewhere = place.run(["explain", "--json", "--store", "copy.db", "monday", "monday"]);
    assert_eq!(difference(&elsewhere), 0.0, "{}", elsewhere.exchange());
}

#[test]
fn a_case_of_two_bench_programs_is_explained_over_as_many_iterations() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    bench_program(&place, "few", 100);
    bench_program(&place, "many", 300);
    let answer = explain(&place, &["--case", "work/add", "./few", "./many"]);
    adds_up(&answer);
    let more = difference(&answer);
    let remark = at(&answer.json(), "/explain/remarks/0").as_str().expect("a remark").to_owned();
    let iterations: f64 = remark.split(' ').nth(2).and_then(|word| word.parse().ok()).expect("a number");
    let each = more / iterations;
    assert!((600.0..1400.0).contains(&each), "{each} of {}", answer.exchange());
    let missing = place.run(["explain", "--case", "work/none", "./few", "./many"]);
    assert!(missing.stderr.contains("it has no case ‘work/none’, but ‘work/add’"), "{}", missing.exchange());
}

#[test]
fn two_servers_are_explained_by_what_they_execute_for_requests() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let port = free_port();
    let server = place.compile("server", SERVER, &["-g"]).display().to_string();
    let command = |steps: &str| format!("{server} {port} {steps} 0 0");
    let url = format!("http://127.0.0.1:{port}/");
    let words = ["--url", &url, "--requests", "20", &command("1000"), &command("3000")];
    let answer = explain(&place, &words);
    adds_up(&answer);
    assert_eq!(first(&answer).0, "main", "{}", answer.exchange());
    let more = difference(&answer);
    let each = more / (20.0 * 2000.0);
    assert!((3.0..=8.0).contains(&each), "{each} of {}", answer.exchange());
    let missing = place.run(["explain", "--url", &url, "./nope", "/bin/true"]);
    assert_eq!(missing.code, 2, "{}", missing.exchange());
    assert!(missing.stderr.contains("there is no file ‘./nope’"), "{}", missing.exchange());
    let silent = place.run(["explain", "--url", &url, "/bin/true", "/bin/true"]);
    assert_eq!(silent.code, 4, "{}", silent.exchange());
}

#[test]
fn a_program_that_executes_itself_is_one_program() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let program = |rounds: u32| {
        format!(
            "#include <unistd.h>\n\
             __attribute__((noinline)) static void work(void) {{\n\
               for (volatile int i = 0; i < {rounds}; i++) {{}}\n}}\n\
             int main(int count, char **words) {{\n  work();\n\
               if (count < 4) execl(words[0], words[0], \"x\", count > 1 ? \"x\" : 0, count > 2 ? \"x\" : 0, (char *)0);\n\
               return count < 4;\n}}\n"
        )
    };
    pair(&place, &program(1000), &program(1100));
    let answer = explain(&place, &["./old", "./new"]);
    let (function, kind, size) = first(&answer);
    assert_eq!((function.as_str(), kind.as_str()), ("work", "own"), "{}", answer.exchange());
    let all = difference(&answer);
    assert!((size / all - 1.0).abs() < 0.05, "{size} of {all}: {}", answer.exchange());
}

#[test]
fn a_program_that_valgrind_cannot_execute_is_refused_with_the_reason() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let text = "#include <unistd.h>\n\
                int main(int count, char **words) {\n\
                  return count > 1 ? 0 : execl(\"/proc/self/exe\", words[0], \"x\", (char *)0);\n}\n";
    pair(&place, text, text);
    let answer = place.run(["explain", "--no-time", "./old", "./new"]);
    // Newer versions of valgrind can do it.
    if answer.code != 0 {
        assert!(answer.stderr.contains("cannot execute /proc/self/exe"), "{}", answer.exchange());
    }
}

#[test]
fn a_program_that_valgrind_cannot_read_is_refused_with_the_reason() {
    use std::os::unix::fs::PermissionsExt;
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    build(&place, "app", &source(2, "all += hash(text, 5);", "hash"));
    std::fs::set_permissions(place.file("app"), std::fs::Permissions::from_mode(0o111)).expect("a mode");
    // Root may read any file.
    if std::fs::File::open(place.file("app")).is_ok() {
        return;
    }
    let answer = place.run(["explain", "./app", "./app"]);
    assert_eq!(answer.code, 3, "{}", answer.exchange());
    assert!(answer.stderr.contains("valgrind cannot read"), "{}", answer.exchange());
}

#[test]
fn programs_with_other_names_that_a_shell_executes_are_versions_of_one() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    pair(&place, &source(20, CALL, "hash"), &source(22, CALL, "hash"));
    let answer = explain(&place, &["sh -c './old; exit 0'", "sh -c './new; exit 0'"]);
    adds_up(&answer);
    assert_eq!(first(&answer).0, "hash", "{}", answer.exchange());
    let text = place.run(["explain", "--no-time", "sh -c './old; exit 0'", "sh -c './new; exit 0'"]);
    assert!(text.stdout.contains("It comes from hash"), "{}", text.exchange());
    assert!(text.stdout.contains("its code changed"), "{}", text.exchange());
}

#[test]
fn a_program_that_sets_its_user_is_refused_with_the_reason() {
    use std::os::unix::fs::PermissionsExt;
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    build(&place, "app", &source(2, CALL, "hash"));
    std::fs::set_permissions(place.file("app"), std::fs::Permissions::from_mode(0o4755)).expect("a mode");
    let answer = place.run(["explain", "./app", "./app"]);
    assert_eq!(answer.code, 3, "{}", answer.exchange());
    assert!(answer.stderr.contains("sets its user"), "{}", answer.exchange());
}

#[test]
fn builds_that_are_used_again_are_mentioned_and_files_outside_the_repository_can_count() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let outside = place.file("outside.h").display().to_string();
    let repository = Repository::new(&place, "repo");
    repository.write(".gitignore", "app\n");
    for rounds in [3000, 3001] {
        let loop_of = format!("for (volatile int i = 0; i < {rounds} * TIMES; i++) {{ }}");
        repository.write("app.c", &format!("int main(void) {{ {loop_of} return 0; }}\n"));
        repository.commit("one more");
    }
    let step = format!("cc -O1 -include '{outside}' -o app app.c");
    let key = format!("sha256sum '{outside}'");
    let compared = |times: u32, more: &[&str]| {
        place.write("outside.h", format!("#define TIMES {times}\n"));
        let build = ["--repo", "repo", "--build", &step, "--artifact", "app", "HEAD~1", "HEAD"];
        let answer = explain(&place, &[more, &build[..], &["--", "./app"]].concat());
        let notes = at(&answer.json(), "/explain/notes").to_string();
        (difference(&answer), notes.contains("‘HEAD~1’ (2") && notes.contains("were built earlier"))
    };
    let (once, is_earlier) = compared(1, &[]);
    assert!(!is_earlier);
    assert_eq!(compared(9, &[]), (once, true), "the step is not run again");
    assert!(!compared(1, &["--toolchain", &key]).1);
    let (more, is_earlier) = compared(9, &["--toolchain", &key]);
    assert!(more > 5.0 * once && !is_earlier, "{once} {more}");
}
