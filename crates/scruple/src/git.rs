//! Runs the git program.

use crate::fault::Fault;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The state of a working tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeState {
    /// The id of the commit that is checked out.
    pub commit: String,
    /// Whether the tree differs from the commit.
    pub dirty: bool,
}

/// Returns the state of the repository that contains a folder. Returns `None` if the folder is in no repository, or if
/// there are no commits or no git program.
pub fn state(folder: &Path) -> Option<TreeState> {
    let repository = Repository::at(folder);
    let commit = repository.ask(["rev-parse", "HEAD"]).ok()?;
    let words = ["status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"];
    let dirty = !repository.ask_of_tree(words, &[]).ok()?.is_empty();
    Some(TreeState { commit, dirty })
}

/// The variables with which a caller, such as a git hook, would make git use another repository than the intended one.
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

/// The settings that prevent git from running hooks and programs that the configuration names.
const TAME: [&str; 6] =
    ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false"];

/// A repository in which git runs.
///
/// The folder and its configuration may come from anybody. Therefore git runs no program that they name, whether to
/// watch files, as a hook, as a content filter, to check signatures, or to fetch missing objects.
#[derive(Clone, Debug)]
pub struct Repository {
    folder: PathBuf,
}

/// Why git gave no answer.
#[derive(Debug)]
pub enum GitError {
    /// Git reported this error.
    Message(String),
    /// Git could not be started.
    NoGit(Fault),
}

impl GitError {
    /// Creates the error for the user, with what was tried and git's message.
    pub fn fault(self, tried: &str) -> Fault {
        match self {
            GitError::Message(message) => Fault::usage(format!("{tried}: {message}")),
            GitError::NoGit(fault) => fault,
        }
    }
}

impl Repository {
    /// Refers to the repository of this folder. An error appears only with the first command.
    pub fn at(folder: &Path) -> Repository {
        Repository { folder: folder.to_owned() }
    }

    /// Returns the folder of the repository.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the full id of the commit that a revision names.
    pub fn commit(&self, revision: &str) -> Result<String, GitError> {
        // After `:/` the whole rest is a text in a commit's message.
        let whole = if revision.starts_with(":/") { "" } else { "^{commit}" };
        self.ask(["rev-parse", "--verify", "--end-of-options", &format!("{revision}{whole}")])
    }

    /// Whether the repository has no commit that a name leads to.
    pub fn is_empty(&self) -> bool {
        let refs = || self.ask(["for-each-ref", "--count=1"]);
        self.commit("HEAD").is_err() && refs().is_ok_and(|refs| refs.is_empty())
    }

    /// Returns the output of git for these arguments.
    pub fn ask<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Result<String, GitError> {
        self.ask_with(words, &[], None)
    }

    /// Returns the output of git for a command that reads files of the working tree, with variables set. Content
    /// filters that the repository's own configuration names are disabled; those of the user stay.
    pub fn ask_of_tree<S: AsRef<OsStr>>(
        &self,
        words: impl IntoIterator<Item = S>,
        env: &[(&str, &OsStr)],
    ) -> Result<String, GitError> {
        let off = self.own_filters()?.into_iter().map(|name| match name.ends_with(".required") {
            true => (name, "false"),
            false => (name, ""),
        });
        // A name may contain any characters, so it cannot be an argument of git.
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

    /// Returns the names of the filter settings in the repository's own configuration.
    fn own_filters(&self) -> Result<Vec<String>, GitError> {
        let words = ["config", "--show-scope", "--name-only", "-z", "--get-regexp", r"^filter\."];
        let answer = match self.ask(words) {
            Ok(answer) => answer,
            // Git reports an error if there are no such settings.
            Err(GitError::Message(_)) => return Ok(Vec::new()),
            Err(refused) => return Err(refused),
        };
        let parts: Vec<&str> = answer.split('\0').collect();
        let pairs = parts.chunks_exact(2).filter(|pair| !["system", "global"].contains(&pair[0]));
        Ok(pairs.map(|pair| pair[1].to_owned()).collect())
    }

    /// Returns the output of git for these arguments, with variables set and a text on standard input.
    pub fn ask_with<S: AsRef<OsStr>>(
        &self,
        words: impl IntoIterator<Item = S>,
        env: &[(&str, &OsStr)],
        input: Option<&str>,
    ) -> Result<String, GitError> {
        let no_git = |error: std::io::Error| {
            GitError::NoGit(Fault::usage(format!("cannot run git, which reads commits: {error}")))
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
            // Git may write before it has read its whole input. A separate thread avoids a deadlock.
            std::thread::spawn(move || stdin.write_all(text.as_bytes()))
        });
        let output = child.wait_with_output().map_err(no_git)?;
        if let Some(writer) = writer {
            // A failure is ignored: if git does not read everything, it reports the reason itself.
            let _ = writer.join();
        }
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()),
            false => Err(GitError::Message(first_informative_line(&String::from_utf8_lossy(&output.stderr)))),
        }
    }
}

/// Returns the first informative line of git's error output, without git's own prefixes.
fn first_informative_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("git gave no reason");
    let line = line.strip_prefix("fatal: ").or(line.strip_prefix("error: ")).unwrap_or(line);
    line.trim().to_owned()
}
