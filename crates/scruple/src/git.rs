//! Calls the git program.

use crate::fault::Fault;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The state of a working tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeState {
    /// The commit that is checked out.
    pub commit: String,
    /// Whether the tree differs from it.
    pub dirty: bool,
}

/// The state of the repository a folder is in; none outside one, without commits, or without git.
///
pub fn state(folder: &Path) -> Option<TreeState> {
    let repository = Repository::at(folder);
    let commit = repository.ask(["rev-parse", "HEAD"]).ok()?;
    let words = ["status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"];
    let dirty = !repository.ask_of_tree(words, &[]).ok()?.is_empty();
    Some(TreeState { commit, dirty })
}

/// Variables by which a caller, such as a git hook, would make git use another repository than the intended one.
pub const MISLEADING: [&str; 9] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
];

/// Settings that prevent git from running programs named by the configuration, and hooks.
const TAME: [&str; 6] =
    ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false"];

/// A repository that is queried.
///
/// The folder, including its configuration, may belong to anybody: no program that it names is run, whether for
/// watching files, as a hook, as a content filter, to check signatures, or to fetch missing objects.
#[derive(Clone, Debug)]
pub struct Repository {
    folder: PathBuf,
}

/// An error of git, in its own words.
#[derive(Debug)]
pub enum Refused {
    /// Git reported an error.
    Said(String),
    /// Git could not be run.
    NoGit(Fault),
}

impl Refused {
    /// The error for the user: what was tried, and git's message.
    pub fn fault(self, tried: &str) -> Fault {
        match self {
            Refused::Said(said) => Fault::usage(format!("{tried}: {said}")),
            Refused::NoGit(fault) => fault,
        }
    }
}

impl Repository {
    /// The repository of this folder; an error appears only with the first query.
    pub fn at(folder: &Path) -> Repository {
        Repository { folder: folder.to_owned() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The output of git for these arguments.
    pub fn ask<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Result<String, Refused> {
        self.ask_with(words, &[], None)
    }

    /// The same where git reads files of the working tree, with variables set: content filters that the repository's
    /// own configuration names are disabled. Those of the user stay.
    pub fn ask_of_tree<S: AsRef<OsStr>>(
        &self,
        words: impl IntoIterator<Item = S>,
        env: &[(&str, &OsStr)],
    ) -> Result<String, Refused> {
        let off = self.own_filters()?.into_iter().map(|name| match name.ends_with(".required") {
            true => (name, "false"),
            false => (name, ""),
        });
        // A name may contain anything, so it cannot be among the arguments.
        let mut variables: Vec<(String, OsString)> = Vec::new();
        for (index, (name, value)) in off.enumerate() {
            variables.push((format!("GIT_CONFIG_KEY_{index}"), name.into()));
            variables.push((format!("GIT_CONFIG_VALUE_{index}"), value.into()));
        }
        variables.push(("GIT_CONFIG_COUNT".to_owned(), (variables.len() / 2).to_string().into()));
        let own = variables.iter().map(|(name, value)| (name.as_str(), value.as_os_str()));
        let env: Vec<(&str, &OsStr)> = own.chain(env.iter().copied()).collect();
        self.ask_with(words, &env, None)
    }

    /// The filter settings in the repository's own configuration.
    fn own_filters(&self) -> Result<Vec<String>, Refused> {
        let words = ["config", "--show-scope", "--name-only", "-z", "--get-regexp", r"^filter\."];
        let answer = match self.ask(words) {
            Ok(answer) => answer,
            // There are none.
            Err(Refused::Said(_)) => return Ok(Vec::new()),
            Err(refused) => return Err(refused),
        };
        let parts: Vec<&str> = answer.split('\0').collect();
        let pairs = parts.chunks_exact(2).filter(|pair| !["system", "global"].contains(&pair[0]));
        Ok(pairs.map(|pair| pair[1].to_owned()).collect())
    }

    /// The same, with variables set and lines on standard input.
    pub fn ask_with<S: AsRef<OsStr>>(
        &self,
        words: impl IntoIterator<Item = S>,
        env: &[(&str, &OsStr)],
        input: Option<&str>,
    ) -> Result<String, Refused> {
        let no_git = |error: std::io::Error| {
            Refused::NoGit(Fault::usage(format!("cannot run git: {error}; histories need the git program")))
        };
        let mut command = Command::new("git");
        MISLEADING.iter().for_each(|name| {
            command.env_remove(name);
        });
        command
            .arg("-C")
            .arg(&self.folder)
            .args(TAME)
            .args(words)
            .envs(env.iter().copied())
            .env("LC_ALL", "C")
            .env("GIT_ALLOW_PROTOCOL", "none")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(no_git)?;
        let writer = child.stdin.take().zip(input.map(str::to_owned)).map(|(mut stdin, text)| {
            // Git may write while it still reads, so that the two must not wait for each other.
            std::thread::spawn(move || stdin.write_all(text.as_bytes()))
        });
        let output = child.wait_with_output().map_err(no_git)?;
        if let Some(writer) = writer {
            // If git does not read everything, it reports why itself.
            let _ = writer.join();
        }
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()),
            false => Err(Refused::Said(said(&String::from_utf8_lossy(&output.stderr)))),
        }
    }
}

/// The first informative line that git wrote before it ended, without git's own prefixes.
fn said(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("git gave no reason");
    let line = line.strip_prefix("fatal: ").or(line.strip_prefix("error: ")).unwrap_or(line);
    line.trim().to_owned()
}
