//! Tests that no program fails, or writes other output, because it is weighed.

use crate::scales::{Done, Scales, Skip, installed, source};
use crate::words;
use scruple_measure::launcher::Ending;
use std::path::PathBuf;

pub const TESTS: &[crate::Test] = &[
    ("users_own_variables_keep_their_effect", own_variables),
    ("users_own_reports_are_still_shown", own_reports),
    ("a_closed_standard_error_hurts_nobody", closed_stderr),
    ("exit_codes_and_uncaught_errors_are_unchanged", exit_codes),
    ("a_killed_program_is_absent_with_a_reason", killed),
    ("a_program_that_executes_another_is_recognised_again", executes),
    ("wrappers_and_shims_are_seen_through", wrappers),
    ("a_tree_of_processes_is_added_up", trees),
    ("forked_workers_report_for_themselves", workers),
    ("environments_look_as_they_did", environments),
    ("restricted_programs_are_left_alone", restricted),
    ("python_is_asked_between_imports_whenever_it_begins", between_imports),
    ("programs_without_a_runtime_are_untouched", others),
    ("small_limits_are_survived", limits),
    ("a_static_program_is_cut_out_of_standard_error", static_ghc),
    ("runtimes_are_recognised_beforehand", recognised),
    ("worker_threads_and_early_exits_of_node", node_threads),
    ("the_allocation_counter_counts_the_same_beside_it", beside_the_counter),
    ("debuggers_may_trace", debuggers),
    ("real_programs_run_unchanged", real_programs),
];

pub fn haskell(scales: &Scales, name: &str, text: &str, flags: &[&str]) -> Result<PathBuf, Skip> {
    let file = format!("{name}.hs");
    scales.write(&file, text);
    let out = format!("{name}-o");
    let mut command = vec!["ghc", "-v0", "-O1", "-outputdir", &out, "-o", name];
    command.extend(flags);
    command.push(&file);
    scales.compile(name, &command)
}

const HELLO: &str = "import System.IO\nmain :: IO ()\nmain = hPutStrLn stderr \"to stderr\" >> print (sum [1 .. 1000 :: Int])\n";

fn own_variables(scales: &mut Scales) -> Done {
    if let Ok(program) = haskell(scales, "hello", HELLO, &["-rtsopts"]) {
        let run = scales.same(words![program], &[("GHCRTS", "-A8m -H32m")]);
        assert!(run.value("heap.peak") >= 8.0 * 1024.0 * 1024.0);
    }
    if installed("ruby").is_ok() {
        let run = scales.same(words!["ruby", "-e", "p $VERBOSE, ENV['RUBYOPT']"], &[("RUBYOPT", "-w")]);
        assert_eq!(run.stdout, "true\n\"-w\"\n");
        assert!(run.value("alloc.objects") > 0.0);
    }
    if installed("node").is_ok() {
        let words = words![
            "node",
            "-p",
            "process.env.NODE_OPTIONS + require('v8').getHeapStatistics().heap_size_limit"
        ];
        let run = scales.same(words, &[("NODE_OPTIONS", "--max-old-space-size=64")]);
        assert!(run.stdout.starts_with("--max-old-space-size=64"));
        assert!(run.value("alloc.bytes") > 0.0);
    }
    if scales.path("ml").exists() {
        let ml = scales.path("ml");
        let run = scales.same(words![ml, "100000"], &[("OCAMLRUNPARAM", "s=4k")]);
        assert!(run.value("gc.minor") > 50.0);
    }
    Ok(())
}

fn own_reports(scales: &mut Scales) -> Done {
    // Times differ from run to run, so only the lines without times are compared.
    if let Ok(program) = haskell(scales, "hello", HELLO, &["-rtsopts"]) {
        for options in ["-t", "-s", "-S"] {
            let by_variable = scales.weigh(words![program], &[("GHCRTS", options)]);
            let by_word = scales.weigh(words![program, "+RTS", options, "-RTS"], &[]);
            for run in [by_variable, by_word] {
                let shown = run.stderr.contains("<<ghc:") || run.stderr.contains("allocated in the heap");
                assert!(shown && run.stderr.contains("to stderr"), "{options}: {}", run.stderr);
                assert!(run.value("alloc.bytes") > 0.0);
            }
        }
        let _ = std::fs::remove_file(scales.path("report"));
        let run = scales.weigh(words![program, "+RTS", "-treport", "--machine-readable"], &[]);
        assert_eq!(run.stderr, "to stderr\n");
        assert!(
            std::fs::read_to_string(scales.path("report")).is_ok_and(|text| text.contains("bytes allocated"))
        );
        assert!(run.value("alloc.bytes") > 0.0);
    }
    if scales.path("ml").exists() {
        let ml = scales.path("ml");
        let run = scales.same(words![ml, "1000"], &[("OCAMLRUNPARAM", "v=0x400")]);
        assert!(run.stderr.contains("minor_collections: "));
        assert!(run.value("alloc.bytes") > 0.0);
    }
    Ok(())
}

fn closed_stderr(scales: &mut Scales) -> Done {
    for (program, text) in each_runtime(scales) {
        let script = format!("exec 2>&-; exec {program}");
        let run = scales.same(words!["/bin/sh", "-c", script], &[]);
        assert_eq!(run.ending, Ending::Exited(0), "{program}");
        assert!(run.value(text) > 0.0, "{program}");
    }
    Ok(())
}

/// A command line for each installed runtime, and a metric that the runtime reports.
fn each_runtime(scales: &Scales) -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    let mut add = |word: &str, rest: String, metric| {
        if installed(word).is_ok() {
            found.push((rest, metric));
        }
    };
    let shown = |name: &str| source(name).display().to_string();
    add("/usr/bin/python3", format!("/usr/bin/python3 {} 1000", shown("alloc.py")), "alloc.objects");
    add("node", format!("node {} 1000", shown("alloc.cjs")), "alloc.bytes");
    add("ruby", format!("ruby {} 1000", shown("alloc.rb")), "alloc.objects");
    add("php", format!("php {} 1000", shown("alloc.php")), "alloc.bytes");
    add("racket", format!("racket {} 1000", shown("alloc.rkt")), "alloc.bytes");
    add("lua5.4", format!("lua5.4 {} 100000", shown("alloc.lua")), "gc.count");
    add("guile", format!("guile -q {} 1000", shown("alloc.scm")), "alloc.bytes");
    for name in ["hs 1000", "ml 1000"] {
        let program = name.split(' ').next().unwrap_or(name);
        if scales.path(program).exists() {
            found.push((format!("./{name}"), "alloc.bytes"));
        }
    }
    found
}

fn exit_codes(scales: &mut Scales) -> Done {
    let mut lines = vec![("/bin/sh", "exit 9")];
    lines.push(("/usr/bin/python3", "import os; os._exit(3)"));
    lines.push(("/usr/bin/python3", "raise SystemExit(4)"));
    lines.push(("/usr/bin/python3", "1/0"));
    for (program, text) in
        [("node", "process.exit(5)"), ("node", "process.abort"), ("ruby", "exit! 6"), ("ruby", "abort 'x'")]
    {
        lines.push((program, text));
    }
    lines.push(("php", "exit(7);"));
    lines.push(("perl", "die qq(gone\\n)"));
    for (program, text) in lines {
        if installed(program).is_err() {
            continue;
        }
        let option = match program {
            "php" => "-r",
            "/bin/sh" | "/usr/bin/python3" => "-c",
            _ => "-e",
        };
        scales.same(words![program, option, text], &[]);
    }
    let failing = "import System.Exit\nimport System.Posix.Process\nimport System.Environment\nmain :: IO ()\nmain = do\n  \
        [how] <- getArgs\n  case how of\n    \"code\" -> exitWith (ExitFailure 3)\n    \"error\" -> error \"uncaught\"\n    \
        _ -> exitImmediately (ExitFailure 4)\n";
    let program = haskell(scales, "failing", failing, &["-package", "unix"])?;
    for how in ["code", "error", "immediately"] {
        let run = scales.same(words![program, how], &[]);
        match how {
            "immediately" => assert!(run.absent("alloc.bytes").contains("exitImmediately")),
            _ => assert!(run.value("alloc.bytes") > 0.0, "{how}"),
        }
    }
    Ok(())
}

fn killed(scales: &mut Scales) -> Done {
    installed("ruby")?;
    let run = scales.same(words!["ruby", "-e", "Process.kill(:KILL, Process.pid); sleep"], &[]);
    assert_eq!(run.ending, Ending::Signaled(9));
    assert!(run.absent("alloc.objects").contains("killed"));
    let run = scales.same(
        words!["/usr/bin/python3", "-c", "import os; [object() for i in range(9)]; os.kill(os.getpid(), 9)"],
        &[],
    );
    assert!(run.value("alloc.objects") > 1000.0, "counts of CPython survive");
    Ok(())
}

fn executes(scales: &mut Scales) -> Done {
    installed("node")?;
    installed("/usr/bin/python3")?;
    let code = "import os, sys; os.execvp('node', ['node', '-e', 'console.log(1)'])";
    let run = scales.same(words!["/usr/bin/python3", "-c", code], &[]);
    let source = &run.reading("alloc.bytes").source;
    assert!(source.contains("python") && source.contains("node"), "{source}");
    Ok(())
}

fn wrappers(scales: &mut Scales) -> Done {
    installed("/usr/bin/python3")?;
    let shim = scales.script("shim", "#!/bin/sh\nexec /usr/bin/python3 \"$@\"\n");
    let disguised = scales
        .script("disguised", "#!/usr/bin/env -S bash -e\nexec -a notpython /usr/bin/python3 -c 'print(1)'\n");
    for words in [&words![shim, "-c", "print(1)"][..], &words![disguised][..]] {
        let run = scales.same(words, &[]);
        assert_eq!(run.stdout, "1\n");
        assert!(run.reading("alloc.objects").source.contains("python"));
    }
    Ok(())
}

fn trees(scales: &mut Scales) -> Done {
    let program = haskell(scales, "hello", HELLO, &["-rtsopts"])?;
    let one = scales.same(words![program], &[]);
    let script = "./hello & wait; ./hello; ./hello | cat";
    let three = scales.same(words!["/bin/sh", "-c", script], &[]);
    assert_eq!(three.value("alloc.bytes"), 3.0 * one.value("alloc.bytes"));
    assert_eq!(three.reading("alloc.bytes").source, "ghc × 3");
    Ok(())
}

fn workers(scales: &mut Scales) -> Done {
    installed("/usr/bin/python3")?;
    let script = "import os\nfor i in range(3):\n    if os.fork() == 0:\n        x = [object() for i in range(200000)]\n        \
        os._exit(0)\nif os.fork() == 0:\n    os._exit(0)\nfor i in range(4): os.wait()\nprint('done')\n";
    let path = scales.write("workers.py", script);
    let run = scales.same(words!["/usr/bin/python3", path], &[]);
    assert_eq!(run.reading("alloc.objects").source, "python × 5");
    assert!(run.value("alloc.objects") > 600_000.0);
    let alone = scales.same(words!["/usr/bin/python3", "-c", "print('done')"], &[]);
    assert!(run.value("alloc.objects") < 1_250_000.0 + 2.0 * alone.value("alloc.objects"), "counted once");
    if installed("ruby").is_ok() {
        let code = "3.times { fork { Array.new(50_000) { Object.new } } }; Process.waitall; puts 1";
        let run = scales.same(words!["ruby", "-e", code], &[]);
        let objects = run.value("alloc.objects");
        assert!((150_000.0..350_000.0).contains(&objects), "{objects}");
        assert_eq!(run.reading("alloc.objects").source, "ruby × 4");
    }
    Ok(())
}

/// Every program prints the same environment as without the agent, and so do the programs that it starts.
fn environments(scales: &mut Scales) -> Done {
    let own = [("GHCRTS", "-A4m"), ("NODE_OPTIONS", "--no-warnings"), ("ASAN_OPTIONS", "color=never")];
    scales.same(words!["env"], &own);
    for starter in ["env", "env -i A=1 env", "exec env", "env; env -u ASAN_OPTIONS env"] {
        for shell in ["/bin/sh", "/bin/bash"] {
            if installed(shell).is_ok() {
                scales.same(words![shell, "-c", format!("({starter}) | grep -v ^_= | sort")], &own);
            }
        }
    }
    let shown = [
        (
            "/usr/bin/python3",
            "-c",
            "import os, subprocess; print(sorted(os.environ.items()), os.listdir('/proc/self/fd'), flush=True); \
             subprocess.run(['sh', '-c', 'env | sort']); subprocess.run(['env'], env={'A': '1'}); os.system('env | sort')",
        ),
        (
            "node",
            "-e",
            "console.log(Object.entries(process.env).sort().join()); require('child_process').execSync('env | sort', {stdio: 'inherit'})",
        ),
        ("ruby", "-e", "p ENV.to_a.sort; STDOUT.flush; system 'env | sort'; puts `env | sort`"),
        ("perl", "-e", "$| = 1; print map { \"$_=$ENV{$_}\\n\" } sort keys %ENV; system 'env | sort'"),
        ("php", "-r", "$e = getenv(); ksort($e); print_r($e); system('env | sort');"),
    ];
    for (program, option, code) in shown {
        if installed(program).is_ok() {
            scales.same(words![program, option, code], &own);
        }
    }
    let lookup = "import System.Environment\nmain :: IO ()\nmain = lookupEnv \"GHCRTS\" >>= print\n";
    let program = haskell(scales, "lookup", lookup, &[])?;
    assert_eq!(scales.same(words![program], &[]).stdout, "Nothing\n");
    let looks = "import GHC.Stats\nmain :: IO ()\nmain = getRTSStatsEnabled >>= print\n";
    let program = haskell(scales, "looks", looks, &[])?;
    let run = scales.same(words![program], &[]);
    assert!(run.value("alloc.bytes") > 0.0);
    Ok(())
}

/// The agent queries CPython after a number of allocations. Additional words on the command line shift that moment by
/// a few allocations each.
fn between_imports(scales: &mut Scales) -> Done {
    installed("/usr/bin/python3")?;
    for n in 0..72 {
        let text = (0..n).map(|i| format!(" w{i}")).collect::<String>();
        let script = format!("exec /usr/bin/python3 -c 'import json, gc; gc.collect()'{text}");
        let run = scales.weigh(words!["/bin/sh", "-c", script], &[]);
        assert_eq!((run.ending, run.stderr.as_str()), (Ending::Exited(0), ""), "{n}");
        assert!(run.value("gc.count") >= 1.0, "{n}");
    }
    Ok(())
}

fn restricted(scales: &mut Scales) -> Done {
    installed("node")?;
    let words = words!["node", "--experimental-permission", "-p", "1"];
    let run = scales.weigh(words, &[]);
    assert_eq!((run.ending, run.stdout.as_str()), (Ending::Exited(0), "1\n"));
    assert!(run.absent("alloc.bytes").contains("permission"));
    installed("/usr/bin/python3")?;
    let run = scales.same(words!["/usr/bin/python3", "-I", "-S", "-E", "-c", "print(2)"], &[]);
    assert!(run.value("alloc.objects") > 0.0);
    let run = scales.same(words!["/usr/bin/python3", "-X", "dev", "-c", "print(2)"], &[]);
    assert!(run.absent("alloc.objects").contains("PYTHONMALLOC"));
    Ok(())
}

fn others(scales: &mut Scales) -> Done {
    let run = scales.same(words!["/bin/ls", "/"], &[]);
    assert_eq!(run.absent("alloc.bytes"), "no language runtime was recognised");
    let code = "for i in 1 2 3; do (printf '%s\\n' $i >&2); done; kill -TERM $$";
    assert_eq!(scales.same(words!["/bin/sh", "-c", code], &[]).ending, Ending::Signaled(15));
    let c = "#include <stdio.h>\n#include <stdlib.h>\nint main(void) { fprintf(stderr, \"%s: \", \"me\"); fputc('\\n', stderr);\n\
        fprintf(stderr, \"minor_words: %d\\n\", 3); fprintf(stdout, \"%s %.3Lf\\n\", getenv(\"GHCRTS\") ? \"set\" : \"unset\", 1.5L);\n\
        return 2; }\n";
    scales.write("c.c", c);
    let program = scales.compile("c", &["cc", "-O2", "-D_FORTIFY_SOURCE=2", "-o", "c", "c.c"])?;
    scales.same(words![program], &[]);
    scales.same(words![program], &[("GHCRTS", "x")]);
    if let Ok(program) = scales.compile("c-asan", &["cc", "-fsanitize=address", "-o", "c-asan", "c.c"]) {
        scales.same(words![program], &[]);
        scales.same(words![program], &[("ASAN_OPTIONS", "detect_leaks=0")]);
    }
    Ok(())
}

fn limits(scales: &mut Scales) -> Done {
    for (program, _) in each_runtime(scales) {
        for limit in ["ulimit -n 40;", "ulimit -c 0;"] {
            let script = format!("{limit} exec {program}");
            let run = scales.same(words!["/bin/sh", "-c", script], &[]);
            assert_eq!(run.ending, Ending::Exited(0), "{script}");
        }
    }
    Ok(())
}

fn static_ghc(scales: &mut Scales) -> Done {
    let program = haskell(scales, "hello-static", HELLO, &["-optl-static", "-optl-pthread"])?;
    let run = scales.same(words![program], &[]);
    assert_eq!(run.stderr, "to stderr\n");
    assert!(run.value("alloc.bytes") > 0.0);
    let closed = haskell(scales, "hello-static-none", HELLO, &["-optl-static", "-rtsopts=none"])?;
    scales.same(words![closed], &[]);
    Ok(())
}

fn recognised(scales: &mut Scales) -> Done {
    use scruple_measure::program::Program;
    use scruple_measure::runtimes::{Runtime, recognise};
    let known = [
        ("guile", Runtime::Guile),
        ("ruby", Runtime::Ruby),
        ("node", Runtime::Node),
        ("java", Runtime::Jvm),
        ("/usr/bin/python3", Runtime::Python),
        ("php", Runtime::Php),
        ("racket", Runtime::Racket),
        ("sbcl", Runtime::Sbcl),
        ("lua5.4", Runtime::Lua),
        ("perl", Runtime::Perl),
        ("pypy3", Runtime::Pypy),
        ("luajit", Runtime::Luajit),
        ("chezscheme", Runtime::Chez),
        ("mono", Runtime::Mono),
        ("ocamlrun", Runtime::Ocaml),
        ("go", Runtime::Go),
        ("/usr/lib/R/bin/exec/R", Runtime::R),
    ];
    for (name, runtime) in known {
        let Ok(path) = installed(name) else { continue };
        let found = recognise(&Program { path });
        assert_eq!(found.first().map(|found| found.runtime), Some(runtime), "{name}");
    }
    let program = haskell(scales, "hello", HELLO, &["-rtsopts"])?;
    let stripped =
        scales.compile("hello-stripped", &["strip", "-o", "hello-stripped", &program.to_string_lossy()])?;
    for path in [program, stripped] {
        let found = recognise(&Program { path });
        assert_eq!((found[0].runtime, found[0].version.is_some()), (Runtime::Ghc, true));
        assert!(found[0].metrics.contains(&"gc.pause_max"));
    }
    assert!(recognise(&Program { path: "/bin/ls".into() }).is_empty());
    Ok(())
}

fn node_threads(scales: &mut Scales) -> Done {
    installed("node")?;
    let code = "const { Worker } = require('node:worker_threads');\
        const w = new Worker('let a = []; for (let i = 0; i < 1e5; i++) a.push({}); process.exitCode = 0', { eval: true });\
        w.on('exit', () => console.log('done'));";
    let run = scales.same(words!["node", "-e", code], &[]);
    let alone = scales.same(words!["node", "-e", "console.log('done')"], &[]);
    assert!(run.value("alloc.bytes") > alone.value("alloc.bytes") + 2e6);
    let run = scales.same(words!["node", "--input-type=module", "-e", "process.exit(3)"], &[]);
    assert_eq!(run.ending, Ending::Exited(3));
    Ok(())
}

/// The mallocs of a program without a runtime must not change. Those of a runtime may, by what querying it costs.
fn beside_the_counter(scales: &mut Scales) -> Done {
    let [alone, both] = scales.mallocs(words!["/bin/ls", "-l", "/"]);
    assert_eq!(alone, both);
    for (program, _) in each_runtime(scales) {
        let words: Vec<&std::ffi::OsStr> = program.split(' ').map(std::ffi::OsStr::new).collect();
        if !program.starts_with("./") {
            let [alone, both] = scales.mallocs(&words);
            println!("    {program}: {alone} mallocs alone, {both} with the runtimes asked");
            assert!((both / alone - 1.0).abs() < 0.25, "{program}: {alone} {both}");
        }
    }
    Ok(())
}

/// A debugger traces its child, which no other process may be tracing then.
fn debuggers(scales: &mut Scales) -> Done {
    let tracer = "#include <stdio.h>\n#include <sys/ptrace.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
        int main(void) { int status; if (fork() == 0) { long r = ptrace(PTRACE_TRACEME, 0, 0, 0); _exit(r == 0 ? 0 : 9); }\n\
        wait(&status); printf(\"%d\\n\", WEXITSTATUS(status)); return 0; }\n";
    scales.write("tracer.c", tracer);
    scales.compile("tracer", &["cc", "-o", "tracer", "tracer.c"])?;
    let text = "package main\n\nimport (\n\t\"fmt\"\n\t\"os/exec\"\n)\n\nfunc main() {\n\t\
        out, err := exec.Command(\"./tracer\").Output()\n\tfmt.Print(string(out), err, \"\\n\")\n}\n";
    scales.write("runs-tracer.go", text);
    let program = scales.compile("runs-tracer", &["go", "build", "-o", "runs-tracer", "runs-tracer.go"])?;
    let run = scales.same(words![program], &[]);
    assert_eq!(run.stdout, "0\n<nil>\n");
    assert_eq!(run.reading("alloc.bytes").source, "go");
    Ok(())
}

/// Programs in common use, on our input; programs that are not installed are skipped.
fn real_programs(scales: &mut Scales) -> Done {
    let text: String =
        (0..200).map(|i| format!("# Part {i}\n\nSome *text* and a [link](x{i}).\n\n- a\n- b\n\n")).collect();
    scales.write("page.md", &text);
    scales.write("script.sh", "#!/bin/sh\nfor f in $(ls *.x); do echo $f; done\n");
    std::fs::copy(source("Alloc.java"), scales.path("Alloc.java")).expect("copied");
    std::fs::copy(source("alloc.ml"), scales.path("real.ml")).expect("copied");
    let mut ran = 0;
    let lines: &[&[&str]] = &[
        &["pandoc", "-t", "html", "page.md"],
        &["shellcheck", "--version"],
        &["shellcheck", "script.sh"],
        &["hlint", "--version"],
        &["go", "vet", "./nothing-here"],
        &["go", "version"],
        &["javac", "-version"],
        &["javac", "-d", "classes", "Alloc.java"],
        &["ocamlfind", "list"],
        &["ocamlc", "-config"],
        &["ocamlfind", "ocamlopt", "-package", "str", "-o", "real", "real.ml"],
        &["guile", "-c", "(display (string-length (object->string (iota 1000))))"],
        &["npm", "--version"],
        &["gem", "--version"],
        &["irb", "--version"],
    ];
    for line in lines {
        if installed(line[0]).is_err() {
            continue;
        }
        let words: Vec<&std::ffi::OsStr> = line.iter().map(std::ffi::OsStr::new).collect();
        let run = scales.same(&words, &[]);
        ran += 1;
        assert!(run.value("gc.count") >= 0.0, "{line:?}");
    }
    if ran == 0 {
        return Err(Skip("none of them is installed".to_owned()));
    }
    Ok(())
}
