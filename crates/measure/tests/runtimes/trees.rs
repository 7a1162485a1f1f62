//! Tests of process trees: programs that are started by others, execute others, or are killed.

use crate::promise::haskell;
use crate::scales::{Done, Scales, Skip, installed};
use crate::words;
use scruple_core::metric::Quality;
use scruple_measure::launcher::Ending;
use scruple_measure::runtimes::ghc::report::{GhcReport, page};
use std::ffi::OsStr;
use std::process::Command;

pub const TESTS: &[crate::Test] = &[
    ("haskell_programs_that_are_killed_or_become_another_say_so", haskell_ends),
    ("haskell_forked_processes_are_added_up", haskell_forks),
    ("ocaml_forked_processes_are_not_passed_over", ocaml_forks),
    ("a_program_in_a_sandbox_makes_the_total_absent", sandboxed),
    ("a_static_child_that_cannot_be_asked_makes_the_total_absent", static_child),
    ("runtimes_of_which_one_never_tells_are_named", of_parts),
    ("go_children_of_go_programs_are_read", go_children),
    ("go_programs_are_read_wherever_they_are_in_a_tree", go_in_trees),
];

fn sandboxed(scales: &mut Scales) -> Done {
    installed("bwrap")?;
    installed("/usr/bin/python3")?;
    let hidden =
        words!["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/dev/shm", "/usr/bin/python3", "-c", "1"];
    if !Command::new(hidden[0]).args(&hidden[1..]).status().is_ok_and(|status| status.success()) {
        return Err(Skip("bwrap may make no sandbox here".to_owned()));
    }
    let same = words!["bwrap", "--dev-bind", "/", "/", "/usr/bin/python3", "-c", "1"];
    assert!(scales.same(same, &[]).value("alloc.objects") > 0.0);
    assert!(scales.same(hidden, &[]).absent("alloc.objects").contains("sandbox"));
    let code = "import subprocess, sys; subprocess.run(sys.argv[1:])";
    let outer: Vec<&OsStr> = words!["/usr/bin/python3", "-c", code].iter().chain(hidden).copied().collect();
    let run = scales.same(&outer, &[]);
    assert!(run.absent("alloc.objects").contains("sandbox"), "a part is not the whole: {run:#?}");
    let next = scales.same(words!["/usr/bin/python3", "-c", "1"], &[]);
    assert!(next.value("alloc.objects") > 0.0, "the next launch is not affected");
    Ok(())
}

fn static_child(scales: &mut Scales) -> Done {
    installed("/usr/bin/python3")?;
    let text = "main :: IO ()\nmain = print (sum [1 .. 1000 :: Int])\n";
    let program = haskell(scales, "static-child", text, &["-optl-static"])?;
    scales.looks_first = true;
    let alone = scales.same(words![program], &[]);
    let code = "import subprocess, sys; subprocess.run(sys.argv[1:])";
    let inside = scales.same(words!["/usr/bin/python3", "-c", code, program], &[]);
    scales.looks_first = false;
    assert!(alone.value("alloc.bytes") > 0.0);
    let why = inside.absent("alloc.bytes");
    assert!(why.starts_with("ghc in a program of the tree that is static"), "{why}");
    Ok(())
}

fn of_parts(scales: &mut Scales) -> Done {
    installed("/usr/bin/python3")?;
    installed("perl")?;
    let run = scales.same(words!["perl", "-e", "system '/usr/bin/python3', '-c', 1"], &[]);
    assert_eq!(run.reading("alloc.bytes").source, "python; without perl");
    assert_eq!(run.reading("gc.count").source, "python");
    Ok(())
}

fn haskell_ends(scales: &mut Scales) -> Done {
    let text = "import System.Environment\nimport System.Posix.Process\nimport System.Posix.Signals\nmain :: IO ()\nmain = do\n  \
        how <- getArgs\n  case how of\n    [\"kill\"] -> raiseSignal sigKILL\n    \
        program : words -> executeFile program False words Nothing\n    [] -> return ()\n";
    for (name, flag) in [("ends-none", "-rtsopts=none"), ("ends-some", "-rtsopts=some")] {
        let program = haskell(scales, name, text, &[flag, "-package", "unix"])?;
        let killed = scales.same(words![program, "kill"], &[]);
        assert_eq!(killed.ending, Ending::Signaled(9));
        assert!(killed.absent("alloc.bytes").contains("it was killed"), "{}", killed.absent("alloc.bytes"));
        let became = scales.same(words![program, "/bin/true"], &[]);
        assert!(
            became.absent("alloc.bytes").contains("executed another"),
            "{}",
            became.absent("alloc.bytes")
        );
        let twice = scales.same(words![program, program], &[]);
        assert!(twice.absent("alloc.bytes").starts_with("1 of 2 ghc processes"), "a part is not the whole");
        let script = format!("{0}; {0}", program.display());
        let rest = scales.same(words!["/bin/sh", "-c", script], &[]);
        assert_eq!(rest.reading("alloc.bytes").source, "ghc × 2");
    }
    Ok(())
}

/// The expected values come from each process's own report.
fn haskell_forks(scales: &mut Scales) -> Done {
    let text = "import Control.Exception\nimport System.Posix.Process\nimport System.IO\nmain :: IO ()\nmain = do\n  \
        let run n = evaluate (length (show (product [1 .. n :: Integer]))) >>= print >> hFlush stdout\n  run 3000\n  \
        child <- forkProcess (run 6000)\n  _ <- getProcessStatus True False child\n  run 100\n";
    let program = haskell(scales, "forks", text, &["-package", "unix"])?;
    let run = scales.same(words![program], &[]);
    let oracle = scales.weigh(words![program], &[("GHCRTS", "-s")]).stderr;
    let mark = " bytes allocated in the heap";
    let second = oracle.rfind(mark).and_then(|at| oracle[..at].rfind('\n')).expect("two reports");
    let pages = [&oracle[..second], &oracle[second..]].map(|text| page(text).expect("a report"));
    let sum = |of: fn(&GhcReport) -> f64| pages.iter().map(of).sum::<f64>();
    assert_eq!(run.value("gc.count"), sum(|page| page.collections), "{oracle}");
    assert_eq!(run.value("ghc.copied"), sum(|page| page.copied.unwrap_or(0.0)));
    assert_eq!(run.value("gc.major"), sum(|page| page.major.unwrap_or(0.0)));
    assert_eq!(run.reading("gc.count").source, "ghc × 2");
    // The child's report includes the parent's bytes; up to one allocation area of 1 MiB is counted twice.
    let bytes = run.value("alloc.bytes");
    let most = pages[0].allocated.max(pages[1].allocated);
    assert!((most..most + 2.5e6).contains(&bytes), "{bytes} {most}");
    assert_eq!(run.reading("alloc.bytes").quality, Quality::Estimated);
    Ok(())
}

fn ocaml_forks(scales: &mut Scales) -> Done {
    let text = "let work n = for i = 1 to n do ignore (Sys.opaque_identity (ref i)) done\nlet () =\n  work 1000000;\n  \
        match Unix.fork () with\n  | 0 -> work 5000000\n  | child -> ignore (Unix.waitpid [] child)\n";
    scales.write("forks.ml", text);
    let command = ["ocamlfind", "ocamlopt", "-package", "unix", "-linkpkg", "-o", "forks-ml", "forks.ml"];
    let program = scales.compile("forks-ml", &command)?;
    let why = scales.same(words![program], &[]).absent("alloc.bytes").to_owned();
    assert!(why.starts_with("1 of 2 ocaml processes") && why.contains("forked"), "{why}");
    let executes = "let () = ignore (Unix.create_process \"/bin/true\" [|\"true\"|] Unix.stdin Unix.stdout Unix.stderr |> \
        Unix.waitpid [])\n";
    scales.write("executes.ml", executes);
    let command =
        ["ocamlfind", "ocamlopt", "-package", "unix", "-linkpkg", "-o", "executes-ml", "executes.ml"];
    let program = scales.compile("executes-ml", &command)?;
    assert_eq!(scales.same(words![program], &[]).reading("alloc.bytes").source, "ocaml");
    Ok(())
}

fn go_children(scales: &mut Scales) -> Done {
    let text = "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\t\"os/exec\"\n\t\"syscall\"\n)\n\nfunc main() {\n\t\
        if len(os.Args) > 1 && os.Args[1] == \"killed\" {\n\t\tsyscall.Kill(os.Getpid(), syscall.SIGKILL)\n\t}\n\t\
        if len(os.Args) > 1 {\n\t\tfmt.Println(\"child\")\n\t\tos.Exit(0)\n\t}\n\tout, err := exec.Command(os.Args[0], \"x\").Output()\n\t\
        fmt.Print(string(out), err, \"\\n\")\n\tout, err = exec.Command(\"/bin/echo\", \"y\").Output()\n\tfmt.Print(string(out), err, \"\\n\")\n\tos.Exit(5)\n}\n";
    scales.write("parent.go", text);
    let program = scales.compile("parent", &["go", "build", "-o", "parent", "parent.go"])?;
    let run = scales.same(words![program], &[]);
    assert_eq!(run.ending, Ending::Exited(5));
    assert_eq!(run.reading("alloc.bytes").source, "go × 2");
    let run = scales.same(words![program, "killed"], &[]);
    assert_eq!(run.ending, Ending::Signaled(9));
    let value = run.reading("alloc.bytes").value.clone();
    assert!(value.as_ref().map_or_else(|why| why.contains("killed"), |bytes| *bytes > 0.0), "{value:?}");
    Ok(())
}

fn go_in_trees(scales: &mut Scales) -> Done {
    let text = "package main\n\nimport (\n\t\"os\"\n\t\"syscall\"\n)\n\nvar kept []byte\n\nfunc main() {\n\t\
        for i := 0; i < 1000; i++ {\n\t\tkept = make([]byte, 1<<16)\n\t}\n\tif len(os.Args) > 1 {\n\t\t\
        syscall.Exec(os.Args[1], os.Args[1:], os.Environ())\n\t}\n}\n";
    scales.write("takes.go", text);
    let program = scales.compile("takes", &["go", "build", "-o", "takes", "takes.go"])?;
    let stripped = ["go", "build", "-ldflags=-s -w", "-o", "takes-stripped", "takes.go"];
    let stripped = scales.compile("takes-stripped", &stripped)?;
    let alone = scales.same(words![program], &[]).value("alloc.bytes");
    scales.looks_first = true;
    assert!(alone > 65e6, "{alone}");
    let script = scales.script("goes", "#!/bin/sh\nexec ./takes\n");
    for words in [
        &words!["env", program][..],
        words!["nice", program],
        words!["/bin/sh", "-c", "./takes; true"],
        words![script],
    ] {
        let run = scales.same(words, &[]);
        assert_eq!(run.reading("alloc.bytes").source, "go", "{words:?}");
        let ratio = run.value("alloc.bytes") / alone;
        assert!((0.99..1.01).contains(&ratio), "{words:?}: {ratio}");
    }
    let three = scales.same(words!["/bin/sh", "-c", "./takes & ./takes; ./takes | cat; wait"], &[]);
    assert_eq!(three.reading("alloc.bytes").source, "go × 3");
    assert!(three.value("alloc.bytes") > 2.97 * alone);
    let wrapped = scales.same(words!["env", stripped], &[]).value("alloc.bytes");
    assert!((0.99..1.01).contains(&(wrapped / alone)), "{wrapped}");
    for script in ["./takes-stripped; true", "cp takes-stripped fresh; ./fresh; rm fresh"] {
        let run = scales.same(words!["/bin/sh", "-c", script], &[]);
        assert!((0.99..1.01).contains(&(run.value("alloc.bytes") / alone)), "{script}: {run:#?}");
    }
    let run = scales.same(words![stripped], &[]);
    assert_eq!(run.reading("alloc.bytes").source, "go");
    let options = ["go", "build", "-ldflags=-s -w", "-gcflags=all=-N -l", "-o", "takes-foreign", "takes.go"];
    scales.compile("takes-foreign", &options)?;
    let why =
        scales.same(words!["/bin/sh", "-c", "./takes-foreign; true"], &[]).absent("alloc.bytes").to_owned();
    assert!(why.contains("no symbols") && why.contains("not that of another program"), "{why}");
    for next in ["/bin/true", "./takes"] {
        let why = scales.same(words![program, next], &[]).absent("alloc.bytes").to_owned();
        assert!(why.contains("executed another program"), "{why}");
    }
    if installed("/usr/bin/python3").is_ok() {
        let code = "import subprocess; subprocess.run(['./takes'])";
        let run = scales.same(words!["/usr/bin/python3", "-c", code], &[]);
        assert_eq!(run.reading("alloc.bytes").source, "python, go");
        assert!(run.value("alloc.bytes") > alone);
        let code = "import subprocess; subprocess.run(['./takes', '/bin/true'])";
        let why = scales.same(words!["/usr/bin/python3", "-c", code], &[]).absent("alloc.bytes").to_owned();
        assert!(why.contains("executed another program"), "a part is not shown as the whole: {why}");
    }
    scales.looks_first = false;
    Ok(())
}
