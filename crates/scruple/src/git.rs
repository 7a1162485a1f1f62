//! What git says, through the git program.

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

/// Variables by which a caller, such as a hook of git, would make git look at another repository than the one meant.
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

/// What a caller of git may not choose: programs that the configuration names, and hooks.
const TAME: [&str; 6] =
    ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false"];

/// A repository that git is asked about.
///
/// The folder may be anybody's, and its configuration with it: no program that this names is run, be it for the watching of
/// files, as a hook, as a filter of their content, to check signatures, or to fetch what is missing.
#[derive(Clone, Debug)]
pub struct Repository {
    folder: PathBuf,
}

/// What git refused, in its own words.
#[derive(Debug)]
pub enum Refused {
    /// Git said no.
    Said(String),
    /// Git itself could not be had.
    NoGit(Fault),
}

impl Refused {
    /// The error for the user: what was tried, and what git said of it.
    pub fn fault(self, tried: &str) -> Fault {
        match self {
            Refused::Said(said) => Fault::usage(format!("{tried}: {said}")),
            Refused::NoGit(fault) => fault,
        }
    }
}

impl Repository {
    /// The repository that this folder is in; whether it is one shows when it is asked.
    pub fn at(folder: &Path) -> Repository {
        Repository { folder: folder.to_owned() }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What git answers to these words.
    pub fn ask<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Result<String, Refused> {
        self.ask_with(words, &[], None)
    }

    /// The same where git looks into files of the working tree, with variables set: filters of their content that the
    /// repository's own configuration names are turned off. Those of the user stay.
    pub fn ask_of_tree<S: AsRef<OsStr>>(
        &self,
        words: impl IntoIterator<Item = S>,
        env: &[(&str, &OsStr)],
    ) -> Result<String, Refused> {
        let off = self.own_filters()?.into_iter().map(|name| match name.ends_with(".required") {
            true => (name, "false"),
            false => (name, ""),
        });
        // A name may hold anything, so that it cannot stand among the words.
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

    /// The settings of filters that stand in the repository's own configuration.
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
            // Git may answer while it still reads, so that the two must not wait for each other.
            std::thread::spawn(move || stdin.write_all(text.as_bytes()))
        });
        let output = child.wait_with_output().map_err(no_git)?;
        if let Some(writer) = writer {
            // A git that did not want to read all of it says why by itself.
            let _ = writer.join();
        }
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()),
            false => Err(Refused::Said(said(&String::from_utf8_lossy(&output.stderr)))),
        }
    }
}

/// The first line of what git wrote on its way out that says anything, without git's own prefixes.
fn said(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("git gave no reason");
    let line = line.strip_prefix("fatal: ").or(line.strip_prefix("error: ")).unwrap_or(line);
    line.trim().to_owned()
}
