//! Tests of runtimes that are queried in other ways, and of those whose missing figures have a reason.

use crate::promise::haskell;
use crate::scales::{Done, Scales, installed, source};
use crate::words;
use scruple_measure::launcher::Ending;
use std::ffi::OsStr;
use std::path::Path;

pub const TESTS: &[crate::Test] = &[
    ("pypy_counts_collections", pypy),
    ("luajit_counts_cycles", luajit),
    ("runtimes_that_tell_nothing_are_named_with_the_reason", named),
    ("a_cleared_environment_hides_no_runtime", cleared),
    ("programs_started_in_any_way_are_reached", started),
    ("a_stripped_program_that_ignores_options_is_named", ignores),
    ("node_tells_its_figures_when_a_signal_ends_it", terminated),
    ("a_busy_node_does_not_outlive_a_signal", terminated_while_busy),
];

fn pypy(scales: &mut Scales) -> Done {
    installed("pypy3")?;
    // By default the nursery is about as large as the processor's cache, and may hold all objects.
    let nursery = [("PYPY_GC_NURSERY", "4M")];
    let [few, many] =
        ["200000", "2000000"].map(|n| scales.same(words!["pypy3", source("alloc.py"), n], &nursery));
    assert!(many.value("gc.minor") > few.value("gc.minor"), "{few:#?}\n{many:#?}");
    assert_eq!(many.value("gc.count"), many.value("gc.minor") + many.value("gc.major"));
    assert!(many.value("heap.peak") > 4.0 * 1024.0 * 1024.0, "the nursery is part of the heap: {many:#?}");
    let log = scales.path("own.log");
    let own = [("PYPYLOG", &*format!("gc-minor:{}", log.display()))];
    let refused = scales.weigh(words!["pypy3", source("alloc.py"), "1000"], &own);
    assert!(refused.absent("gc.count").contains("PYPYLOG"), "{}", refused.absent("gc.count"));
    assert!(log.exists(), "the user's own log goes where it went");
    Ok(())
}

fn luajit(scales: &mut Scales) -> Done {
    installed("luajit")?;
    let own = [("LUA_INIT", "print('own')")];
    let run = scales.same(words!["luajit", source("alloc.lua"), "300000"], &own);
    assert!(run.value("gc.count") > 3.0 && run.stdout.starts_with("own\n"));
    assert!(run.absent("alloc.bytes").contains("the kernel"));
    Ok(())
}

fn named(scales: &mut Scales) -> Done {
    let scheme = scales.write("nothing.ss", "(display (length (iota 1000)))\n");
    let scheme = scheme.to_string_lossy();
    // .NET: its host looks for a runtime beside the program; other programs contain theirs.
    let host = "#include <stdlib.h>\nconst char *volatile name = \"hostfxr_main_startupinfo\";\n\
                int main(void) { return getenv(\"COREHOST_TRACE\") || !name; }\n";
    let whole = "int DotNetRuntimeDebugHeader;\nint main(void) { return DotNetRuntimeDebugHeader; }\n";
    for (name, text) in [("apphost", host), ("ahead-of-time", whole)] {
        let file = format!("{name}.c");
        scales.write(&file, text);
        scales.compile(name, &["cc", "-rdynamic", "-o", name, &file])?;
    }
    let [host, whole] = ["apphost", "ahead-of-time"].map(|name| scales.path(name).display().to_string());
    let programs: [(&str, &[&str]); 5] = [
        ("chez", &["chezscheme", "--script", &scheme]),
        ("mono", &["mono", "--version"]),
        ("erlang", &["erl", "-noshell", "-eval", "halt()."]),
        ("dotnet", &[&host]),
        ("dotnet", &[&whole]),
    ];
    for (runtime, all) in programs {
        if installed(all[0]).is_err() {
            println!("skipped: {} is not installed", all[0]);
            continue;
        }
        let all: Vec<&OsStr> = all.iter().map(OsStr::new).collect();
        let run = scales.same(&all, &[]);
        let why = run.absent("gc.count");
        let advice = why.contains("run it with") || why.contains("print");
        assert!(why.starts_with(&format!("{runtime}: ")) && advice, "{why}");
    }
    Ok(())
}

fn cleared(scales: &mut Scales) -> Done {
    let program =
        haskell(scales, "cleared", "main :: IO ()\nmain = print (sum [1 .. 200000 :: Integer])\n", &[])?;
    let plain = scales.same(words![program], &[]);
    let cleared = scales.same(words!["env", "-i", program], &[]);
    // The locale is missing as well, which makes a difference of a few hundred bytes.
    let [cleared, whole] = [cleared, plain].map(|run| run.value("alloc.bytes"));
    assert!((cleared / whole - 1.0).abs() < 0.001, "{cleared} of {whole}");
    let set = scales.same(words!["env", "-i", "LD_PRELOAD=", "A=1", program], &[]);
    assert!(set.value("gc.count") >= 1.0);
    Ok(())
}

/// The starter checks that its environment is clean. The program that it starts has the figures of a direct start.
fn started(scales: &mut Scales) -> Done {
    installed("/usr/bin/python3")?;
    let starter = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/heap/programs/starter.c");
    let starter = scales.compile("starter", &["cc", "-o", "starter", &starter.display().to_string()])?;
    let program = scales.script("started.py", "#!/usr/bin/python3\nx = [object() for i in range(200000)]\n");
    let whole = scales.same(words![program], &[]).value("alloc.objects");
    let ways = "execve execv execvp execvpe execl execle execlp fexecve posix_spawn posix_spawnp system popen wordexp \
                vfork empty none clearenv";
    for way in ways.split_whitespace() {
        let reached = scales.same(words![starter, way, program], &[]).value("alloc.objects");
        // Python copies its environment, which differs.
        assert!((reached / whole - 1.0).abs() < 0.01, "{way}: {reached} of {whole}");
    }
    Ok(())
}

fn ignores(scales: &mut Scales) -> Done {
    let text = "main :: IO ()\nmain = print (sum [1 .. 1000 :: Integer])\n";
    let program = haskell(scales, "ignores", text, &["-rtsopts=ignoreAll", "-optl-s"])?;
    let run = scales.same(words![program], &[]);
    assert!(run.absent("alloc.bytes").contains("ignoreAll"), "{}", run.absent("alloc.bytes"));
    Ok(())
}

fn terminated(scales: &mut Scales) -> Done {
    installed("node")?;
    let serves = "const kept = []; for (let i = 0; i < 300000; i++) kept.push([i]);\n\
                  setInterval(() => {}, 1000); setTimeout(() => process.kill(process.pid, 'SIGTERM'), 500);\n";
    let server = scales.write("serves.cjs", serves);
    let run = scales.same(words!["node", server], &[]);
    assert_eq!(run.ending, Ending::Signaled(15));
    assert!(run.value("alloc.bytes") > 300_000.0 * 24.0 && run.value("gc.count") >= 1.0);
    // The program ends as its own handler determines.
    let own = format!("process.on('SIGTERM', () => process.exit(3));\n{serves}");
    let own = scales.write("own-handler.cjs", &own);
    assert_eq!(scales.same(words!["node", own], &[]).ending, Ending::Exited(3));
    Ok(())
}

/// A program that is busy for a minute after it was terminated would exit with 4 at the end of it.
fn terminated_while_busy(scales: &mut Scales) -> Done {
    installed("node")?;
    let text = "setTimeout(() => { process.kill(process.pid, 'SIGTERM'); const end = Date.now() + 60000;\n\
                while (Date.now() < end); process.exit(4); }, 500);\n";
    let busy = scales.write("busy.cjs", text);
    let run = scales.same(words!["node", busy], &[]);
    assert_eq!(run.ending, Ending::Signaled(15));
    assert!(run.absent("alloc.bytes").contains("killed"), "{}", run.absent("alloc.bytes"));
    // Its own handler waits for the event loop, as without the hook. The program sleeps, for longer than the hook waits.
    let text = "process.on('SIGTERM', () => process.exit(3)); setInterval(() => {}, 1000);\n\
                setTimeout(() => { process.kill(process.pid, 'SIGTERM'); \n\
                Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2500); }, 500);\n";
    let own = scales.write("own-busy.cjs", text);
    assert_eq!(scales.same(words!["node", own], &[]).ending, Ending::Exited(3));
    Ok(())
}
