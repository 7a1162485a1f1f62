//! An empty program that the same version of Go builds with the same settings as a stripped program. Both contain the
//! same code of the runtime. It is kept in the user's cache.

use super::build::{Build, VARIABLES};
use super::layout::Layout;
use crate::user_folder::cache_folder;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex};

/// The program to compare with, for all programs of one build.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmptyProgram {
    /// What both have in common.
    pub(super) build: Build,
    /// Its file, or why there is none.
    pub(super) program: Result<PathBuf, String>,
}

impl EmptyProgram {
    /// The empty program of this build: the one in the cache, else a new one.
    pub(in crate::runtimes) fn of(build: &Build) -> EmptyProgram {
        static KNOWN: LazyLock<Mutex<HashMap<Build, Result<PathBuf, String>>>> =
            LazyLock::new(Mutex::default);
        let mut known = KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let program = known
            .entry(build.clone())
            .or_insert_with(|| in_folder(build, &cache_folder()?.join("go")))
            .clone();
        EmptyProgram { build: build.clone(), program }
    }

    /// Whether it could not be built.
    pub(in crate::runtimes) fn is_missing(&self) -> bool {
        self.program.is_err()
    }
}

/// The empty program in this folder, which is built if it is missing or damaged. A process builds one at a time, always in
/// a folder of the same name, since Go writes the name into the program.
fn in_folder(build: &Build, folder: &Path) -> Result<PathBuf, String> {
    let program = folder.join(file_name(build));
    if !matches!(Layout::read(&program), Ok(Some(_))) {
        let scratch = folder.join(format!("building-{}", std::process::id()));
        let _ = fs::remove_dir_all(&scratch);
        let made = fs::create_dir_all(&scratch)
            .map_err(|error| format!("cannot make ‘{}’: {error}", scratch.display()));
        let built = made.and_then(|()| build_in(build, &scratch)).and_then(|built| {
            fs::rename(&built, &program)
                .map_err(|error| format!("cannot make ‘{}’: {error}", program.display()))
        });
        let _ = fs::remove_dir_all(&scratch);
        built?;
    }
    Ok(program)
}

/// A file name that differs for each build. The words come from a program file, which may hold anything.
fn file_name(build: &Build) -> String {
    let settings = build.settings.iter().map(|(key, value)| format!(" {key}={value}"));
    let words = format!("{}{}", build.version, settings.collect::<String>());
    words.bytes().fold("empty-".to_owned(), |mut name, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' => name.push(char::from(byte)),
            _ => drop(write!(name, "_{byte:02x}")),
        }
        name
    })
}

fn build_in(build: &Build, folder: &Path) -> Result<PathBuf, String> {
    let go = |words: &[&str]| {
        let mut command = Command::new("go");
        command.args(words).current_dir(folder).stdin(Stdio::null());
        for name in ["GOFLAGS", "GOOS", "GOARCH", "GODEBUG"].iter().chain(&VARIABLES) {
            command.env_remove(name);
        }
        let decisive = VARIABLES.iter().filter_map(|name| Some((name, build.settings.get(*name)?)));
        command.envs(decisive).env("GO111MODULE", "off").env("GOTOOLCHAIN", "local");
        command.output()
    };
    let version = &build.version;
    let here = match go(&["env", "GOVERSION"]) {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        _ => return Err(format!("with {version} on the path they could be found")),
    };
    if here.split_whitespace().next() != Some(version) {
        return Err(format!("with {version} on the path they could be found; there is {here}"));
    }
    let source = folder.join("empty.go");
    fs::write(&source, "package main\n\nfunc main() {}\n").map_err(|error| error.to_string())?;
    let mode = format!("-buildmode={}", build.settings.get("-buildmode").map_or("exe", String::as_str));
    let mut words = vec!["build", "-o", "empty", &mode];
    words.extend(build.settings.get("-race").map(|_| "-race"));
    words.push("empty.go");
    let done = go(&words).map_err(|error| format!("go cannot be started: {error}"))?;
    if !done.status.success() {
        let output = String::from_utf8_lossy(&done.stderr);
        let last = output.trim().lines().last().unwrap_or("no reason given").to_owned();
        return Err(format!("{version} could not build a program to compare with: {last}"));
    }
    Ok(folder.join("empty"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_stats::sorting::SortedMap;

    fn build(version: &str, settings: &[(&str, &str)]) -> Build {
        let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Build { version: version.to_owned(), settings: settings.collect() }
    }

    #[test]
    fn another_version_of_go_teaches_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let why = in_folder(&build("go1.2.3", &[]), folder.path()).expect_err("no go is that old");
        assert!(why.contains("with go1.2.3 on the path"), "{why}");
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0, "nothing is left");
    }

    #[test]
    fn each_build_has_a_file_name_of_its_own_in_the_folder() {
        let builds = [
            build("go1.2", &[]),
            build("go1.2", &[("GOAMD64", "v1")]),
            build("go1.2 GOAMD64=v1", &[]),
            build("go1.2_20GOAMD64=v1", &[]),
            build("../../x", &[]),
            build("", &[]),
        ];
        let names: SortedMap<String, &Build> = builds.iter().map(|one| (file_name(one), one)).collect();
        // A version never contains a blank, so the second and the third cannot both exist.
        assert_eq!(names.len(), builds.len() - 1, "{names:?}");
        assert!(names.keys().all(|name| !name.contains('/') && name.starts_with("empty-")), "{names:?}");
    }

    #[test]
    fn an_empty_program_is_built_once_and_again_if_its_file_is_damaged() {
        let version = Command::new("go").args(["env", "GOVERSION"]).output();
        let Ok(version) = version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        else {
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let build = build(&version, &[("CGO_ENABLED", "0")]);
        let made = || fs::metadata(in_folder(&build, folder.path()).expect("built")).expect("a file");
        let (first, second) = (made(), made());
        assert_eq!(first.modified().expect("a time"), second.modified().expect("a time"));
        fs::write(folder.path().join(file_name(&build)), "no program").expect("written");
        assert_eq!(made().len(), first.len());
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1, "nothing else is left");
    }
}
