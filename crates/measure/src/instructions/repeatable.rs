//! Removes differences between launches of a program: addresses, variables, hash seeds, the number of processors.

use crate::launcher::Launch;
use crate::program::Program;
use crate::runtimes::ghc;
use scruple_stats::sorting;
use std::ffi::{OsStr, OsString};

/// Variables that programs need to work normally. They are kept.
const KEPT: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "GHCRTS",
];

/// Prefixes and suffixes of variables that tell programs where their files are. These variables are kept.
const BEGINNINGS: [&str; 16] = [
    "LC_", "XDG_", "PYTHON", "PERL", "RUBY", "GEM_", "NODE_", "GO", "RUST", "CARGO_", "JAVA_", "JDK_",
    "OCAML", "GUILE_", "LUA_", "SSL_",
];
const ENDS: [&str; 3] = ["_HOME", "_PATH", "_ROOT"];

/// Variables that are set for every program. Only programs with the runtime in question read them.
const SET: [(&str, &str); 5] = [
    ("PYTHONHASHSEED", "0"),
    ("PERL_HASH_SEED", "0"),
    ("PERL_PERTURB_KEYS", "0"),
    // With several threads, timing decides which thread does which work.
    ("GOMAXPROCS", "1"),
    ("LC_ALL", "C.UTF-8"),
];

/// Changes a launch so that its instruction count repeats: addresses are fixed, the first argument is the full path,
/// and the environment has few variables in a fixed order. Variables that were set for this command are kept.
pub fn steady(launch: &mut Launch) {
    launch.options.fixed_addresses = true;
    if let Some(name) = launch.argv.first_mut() {
        *name = launch.path.clone().into();
    }
    let own: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let is_set_for_it = |variable: &(OsString, OsString)| !own.contains(variable);
    let mut env: Vec<(OsString, OsString)> = launch
        .env
        .drain(..)
        .filter(|variable| variable.0 != crate::command::PADDING)
        .filter(|variable| is_set_for_it(variable) || is_kept(&variable.0))
        .collect();
    for (name, value) in SET {
        let set_for_it = env.iter().any(|variable| variable.0 == name && is_set_for_it(variable));
        if !set_for_it {
            replace(&mut env, name, value.into());
        }
    }
    add_word(&mut env, "GODEBUG", ",", "asyncpreemptoff", "=1");
    // Timing decides how much a concurrent collection marks while the program continues.
    add_word(&mut env, "GODEBUG", ",", "gcstoptheworld", "=1");
    // Turns off the timer of GHC's runtime; a program that does not accept runtime options would refuse to run.
    if ghc::profiles(&Program { path: launch.path.clone() }).heap_by_type {
        add_word(&mut env, "GHCRTS", " ", "-V", "0");
    }
    replace(&mut env, "PWD", launch.folder.clone().into());
    sorting::ascending(&mut env);
    launch.env = env;
    place_stack(launch);
}

/// The size of a page. Functions such as `strlen` look at where their data are in a page.
const PAGE: usize = 4096;

/// Adds a variable of such a length that the stack begins at the same place in a page, however long the words and the
/// variables are. They are above the stack, with a pointer to each, and the program's path is there once more.
fn place_stack(launch: &mut Launch) {
    let word = |text: &OsString| text.len() + 1 + size_of::<usize>();
    let variable = |(name, value): &(OsString, OsString)| name.len() + 1 + word(value);
    let sizes = launch.argv.iter().map(word).chain(launch.env.iter().map(variable));
    let used = sizes.sum::<usize>() + launch.path.as_os_str().len();
    let padding = "x".repeat(PAGE - used % PAGE);
    launch.env.push((crate::command::PADDING.into(), padding.into()));
}

fn is_kept(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    // The other GHC variables change with each terminal session.
    KEPT.contains(&name)
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || ENDS.iter().any(|end| name.ends_with(end))
}

fn replace(env: &mut Vec<(OsString, OsString)>, name: &str, value: OsString) {
    env.retain(|(other, _)| other != name);
    env.push((name.into(), value));
}

/// Adds a setting to a variable that holds several settings, unless the setting is already there.
fn add_word(env: &mut Vec<(OsString, OsString)>, name: &str, between: &str, setting: &str, value: &str) {
    let mut text =
        env.iter().find(|(other, _)| other == name).map(|(_, text)| text.clone()).unwrap_or_default();
    if text.to_string_lossy().contains(setting) {
        return;
    }
    if !text.is_empty() {
        text.push(between);
    }
    text.push(setting);
    text.push(value);
    replace(env, name, text);
}
