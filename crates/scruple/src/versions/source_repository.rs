//! The repository whose versions are weighed: a local folder, or a mirror of a remote one.

use super::build_process::{BuildLauncher, BuildProgram, message_of_git};
use crate::digest::digest;
use crate::fault::Fault;
use crate::git::{GitError, Repository};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the objects of a repository are stored.
#[derive(Clone, Serialize, Deserialize)]
pub struct ObjectSource {
    /// The folder that holds objects, modules and whatever else working trees share.
    pub common: PathBuf,
    /// The address that relative addresses of submodules are resolved against.
    pub address: String,
}

/// A repository whose commits can be read.
pub struct Source {
    /// The repository in which git runs.
    pub repository: Repository,
    /// The absolute path or the URL of the repository, which identifies it.
    pub place: String,
    /// The last part of the path or URL.
    pub name: String,
    /// The URL of the remote, if there is one.
    pub remote: Option<String>,
    /// The folder that holds objects, modules and whatever else working trees share.
    pub common: PathBuf,
    /// Whether the repository is a shallow clone.
    pub shallow: bool,
    /// Sentences that the user should read.
    pub remarks: Vec<(&'static str, String)>,
}

/// Whether this text is the URL of a repository, which has to be fetched.
pub fn is_url(text: &str) -> bool {
    let scp =
        |text: &str| text.split_once(':').is_some_and(|(host, _)| !host.contains('/') && host.contains('@'));
    text.contains("://") || (scp(text) && !Path::new(text).exists())
}

/// Returns the folder name for a repository: the last part of its path or URL, and a digest that makes it unique.
pub fn key(place: &str) -> String {
    let name: String = last_part(place)
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' })
        .collect();
    format!("{name}-{}", &digest(place)[..12])
}

/// Returns the name of a repository: the last part of its path or URL.
pub fn last_part(place: &str) -> String {
    let trimmed = place.trim_end_matches('/');
    let trimmed = trimmed.strip_suffix("/.git").unwrap_or(trimmed);
    let last = trimmed.rsplit(['/', ':']).next().unwrap_or(trimmed);
    last.strip_suffix(".git").unwrap_or(last).to_owned()
}

/// Returns the absolute path or the URL of the named repository, or of the one around the working folder.
pub fn place_of(named: Option<&str>) -> Result<String, Fault> {
    if let Some(url) = named.filter(|text| is_url(text)) {
        return Ok(url.to_owned());
    }
    let folder = PathBuf::from(named.unwrap_or("."));
    let absolute = folder.canonicalize().map_err(|error| {
        Fault::usage(format!(
            "cannot open the repository ‘{}’: {error}; name one with --repo",
            folder.display()
        ))
    })?;
    let tried = format!("‘{}’ cannot be used as a repository", absolute.display());
    let words = ["rev-parse", "--path-format=absolute", "--show-toplevel"];
    match Repository::at(&absolute).ask(words) {
        Ok(top) => Ok(top),
        // A bare repository has no working tree; its git folder is used as the top folder.
        Err(GitError::Message(message)) if message.contains("work tree") => {
            let words = ["rev-parse", "--path-format=absolute", "--git-dir"];
            Repository::at(&absolute).ask(words).map_err(|refused| refused.fault(&tried))
        }
        Err(GitError::Message(message)) => {
            let advice = match message.contains("dubious ownership") {
                true => {
                    let trust =
                        ["git", "config", "--global", "--add", "safe.directory", &absolute.to_string_lossy()];
                    format!("if you trust its owner, `{}` lets git read it", shell_words::join(trust))
                }
                false => "go to one, or name its path or URL with --repo".to_owned(),
            };
            Err(Fault::usage(format!("{tried}: {message}; {advice}")))
        }
        Err(refused) => Err(refused.fault(&tried)),
    }
}

impl Source {
    /// Opens the repository. A remote repository is mirrored below `folder` first.
    pub fn open(place: &str, folder: &Path, launcher: &mut BuildLauncher) -> Result<Source, Fault> {
        let mut remarks = Vec::new();
        let url = is_url(place);
        let local = match url {
            true => mirror(place, folder, launcher, &mut remarks)?,
            false => PathBuf::from(place),
        };
        let repository = Repository::at(&local);
        let words = ["rev-parse", "--path-format=absolute", "--git-common-dir", "--is-shallow-repository"];
        let answer =
            repository.ask(words).map_err(|refused| refused.fault(&format!("cannot read ‘{place}’")))?;
        let (common, shallow) = answer.split_once('\n').unwrap_or((&answer, "false"));
        let remote = match url {
            true => Some(place.to_owned()),
            false => repository.ask(["remote", "get-url", "origin"]).ok(),
        };
        if !url
            && repository
                .ask_of_tree(["status", "--porcelain", "--untracked-files=no"], &[])
                .is_ok_and(|s| !s.is_empty())
        {
            let text =
                "the working tree has changes that are not committed: they are not part of any version here";
            remarks.push(("dirty-tree", text.to_owned()));
        }
        Ok(Source {
            name: last_part(place),
            place: place.to_owned(),
            remote,
            common: PathBuf::from(common),
            shallow: shallow == "true",
            repository,
            remarks,
        })
    }

    /// Returns where the objects of the repository are stored.
    pub fn origin(&self) -> ObjectSource {
        let address = self.remote.clone().unwrap_or_else(|| self.place.clone());
        ObjectSource { common: self.common.clone(), address }
    }

    /// Returns the full id of the commit that a revision names.
    pub fn commit(&self, revision: &str) -> Result<String, Fault> {
        self.repository.commit(revision).map_err(|refused| match refused {
            GitError::Message(_) => self.range(revision).unwrap_or_else(|| self.unknown(revision)),
            refused => refused.fault(""),
        })
    }

    /// Creates the error for a range where one revision is needed; `None` if it is not a range.
    fn range(&self, revision: &str) -> Option<Fault> {
        let (first, second) = revision.split_once("..")?;
        let second = second.trim_start_matches('.');
        let are_known = [first, second].iter().all(|end| self.repository.commit(end).is_ok());
        are_known.then(|| {
            Fault::usage(format!(
                "‘{revision}’ is a range, where one revision is needed; write two revisions as two words: ‘{first} {second}’"
            ))
        })
    }

    /// Creates the error for an unknown revision, or for a range with an unknown revision.
    pub fn unknown(&self, range: &str) -> Fault {
        if self.repository.is_empty() {
            return Fault::usage(format!("‘{}’ has no commits yet", self.place));
        }
        let advice = match self.shallow {
            true => "the clone is shallow: `git fetch --unshallow` gets the rest".to_owned(),
            false => "`git log` and `git tag` list what there is".to_owned(),
        };
        // A text to find, or a date, may contain spaces and dots.
        let has_text = [":/", "{/", "@{"].iter().any(|mark| range.contains(mark));
        let words = range.split_whitespace().filter(|_| !has_text);
        let mut ends = words.flat_map(|word| word.trim_start_matches('^').split(".."));
        let is_unknown = |end: &&str| !end.is_empty() && self.repository.commit(end).is_err();
        let unknown = ends.find_map(|end| Some(end.trim_start_matches('.')).filter(is_unknown));
        let unknown = unknown.unwrap_or(range);
        Fault::usage(format!("there is no revision ‘{unknown}’ in ‘{}’: {advice}", self.place))
    }

    /// Returns the first of these commits at which a shallow clone ends.
    pub fn first_end<'a>(&self, commits: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        if !self.shallow {
            return None;
        }
        let ends = std::fs::read_to_string(self.common.join("shallow")).unwrap_or_default();
        let ends: HashSet<&str> = ends.lines().collect();
        commits.into_iter().find(|commit| ends.contains(commit))
    }

    /// Returns the id of the commit from which this branch, or else this revision, and HEAD have diverged.
    ///
    /// In a shallow clone a commit that both have may be older than that one. It certainly is the one if it is the
    /// revision itself, or if the clone has all commits since.
    pub fn merge_base(&self, revision: &str) -> Result<String, Fault> {
        // If a tag has the name of a branch, git takes the name for the tag.
        let branches = ["refs/heads", "refs/remotes"].map(|kind| format!("{kind}/{revision}"));
        let branch = branches.iter().find_map(|branch| self.repository.commit(branch).ok());
        let commit = branch.map_or_else(|| self.commit(revision), Ok)?;
        let shallow = "the clone is shallow: `git fetch --unshallow` gets the rest";
        let base = self.repository.ask(["merge-base", &commit, "HEAD"]).map_err(|_| {
            let advice = if self.shallow { shallow } else { "name a revision instead" };
            Fault::usage(format!("‘{revision}’ and HEAD have no commit in common: {advice}"))
        })?;
        let since = [&format!("{base}..{commit}"), &format!("{base}..HEAD")].map(|range| self.members(range));
        let [theirs, ours] = since;
        let since: Vec<String> = theirs?.into_iter().chain(ours?).collect();
        match base != commit && self.first_end(since.iter().map(String::as_str)).is_some() {
            true => Err(Fault::usage(format!(
                "the commit in which ‘{revision}’ and HEAD have diverged is not certain: {shallow}"
            ))),
            false => Ok(base),
        }
    }

    /// Returns the ids of the commits of a range, or of a single commit if the text is not a range.
    pub fn members(&self, range: &str) -> Result<Vec<String>, Fault> {
        if !range.contains("..") {
            return Ok(vec![self.commit(range)?]);
        }
        let answer = self.repository.ask(["rev-list", "--end-of-options", range, "--"]);
        let answer = answer.map_err(|refused| match refused {
            GitError::Message(message) if message.contains("revision") => self.unknown(range),
            refused => refused.fault(&format!("cannot read the commits ‘{range}’")),
        })?;
        Ok(answer.lines().map(str::to_owned).collect())
    }

    /// Creates a commit of the current content of the working tree, if that differs from HEAD. It has the date of HEAD,
    /// so that the same content gives the same commit. Its objects go to the folder `objects`; the repository is not
    /// changed.
    pub fn snapshot(&self, objects: &Path) -> Result<Option<String>, Fault> {
        let failed = |refused: GitError| refused.fault("cannot read the working tree");
        let index = self
            .repository
            .ask(["rev-parse", "--path-format=absolute", "--git-path", "index"])
            .map_err(failed)?;
        let copy = objects.join("scruple-index");
        copy_with_its_time(Path::new(&index), &copy).map_err(|error| Fault::unwritable(&copy, error))?;
        let theirs = self.common.join("objects");
        let env: [(&str, &OsStr); 3] = [
            ("GIT_INDEX_FILE", copy.as_os_str()),
            ("GIT_OBJECT_DIRECTORY", objects.as_os_str()),
            ("GIT_ALTERNATE_OBJECT_DIRECTORIES", theirs.as_os_str()),
        ];
        let work = || -> Result<Option<String>, GitError> {
            self.repository.ask_of_tree(["add", "--update", ":/"], &env)?;
            let tree = self.repository.ask_of_tree(["write-tree"], &env)?;
            if tree == self.repository.ask(["rev-parse", "HEAD^{tree}"])? {
                return Ok(None);
            }
            let identity = ["-c", "user.name=Scruple", "-c", "user.email=scruple@localhost"];
            let words = ["commit-tree", &tree, "-p", "HEAD", "-m", "the working tree"];
            let words = identity.iter().chain(&words);
            let date = self.repository.ask(["log", "-1", "--format=%cI", "HEAD"])?;
            let dates = ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"].map(|name| (name, OsStr::new(&date)));
            self.repository.ask_with(words, &[&env[..], &dates[..]].concat(), None).map(Some)
        };
        let result = work().map_err(failed);
        // If the copy cannot be removed, the next snapshot overwrites it.
        let _ = std::fs::remove_file(&copy);
        result
    }
}

/// Copies git's index with its modification time. Git reads a file again if it is not older than the index, since its
/// time cannot show whether it changed afterwards. A copy with a later time would hide such a change.
fn copy_with_its_time(index: &Path, copy: &Path) -> std::io::Result<()> {
    std::fs::copy(index, copy)?;
    std::fs::File::options().write(true).open(copy)?.set_modified(index.metadata()?.modified()?)
}

/// Removes the locks that a killed git has left in a repository that no other process uses.
pub fn unlock(git: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(git)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_dir() {
            // The folder of objects is skipped: it is large, and git writes it without locks.
            if name != "objects" {
                unlock(&entry.path())?;
            }
        } else if name.to_string_lossy().ends_with(".lock") {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Fetches all branches and tags of a remote repository into a bare repository below `folder`.
fn mirror(
    url: &str,
    folder: &Path,
    launcher: &mut BuildLauncher,
    remarks: &mut Vec<(&'static str, String)>,
) -> Result<PathBuf, Fault> {
    let (there, log) = (folder.join("mirror.git"), folder.join("fetch.log"));
    let began = log.metadata().map_or(0, |data| data.len());
    let limit = Some(Duration::from_secs(3600));
    let known = there.is_dir();
    let partial = folder.join("mirror.partial");
    let target = partial.display().to_string();
    if known {
        unlock(&there).map_err(|error| Fault::unwritable(&there, error))?;
    } else if partial.exists() {
        std::fs::remove_dir_all(&partial).map_err(|error| Fault::unwritable(&partial, error))?;
    }
    let git = ["git", "-c", "gc.auto=0"];
    let doing: &[&str] = match known {
        true => &["fetch", "--quiet", "--prune", "origin"],
        false => &["clone", "--quiet", "--mirror", "--", url, &target],
    };
    let words: Vec<&str> = git.iter().chain(doing).copied().collect();
    let within = if known { there.as_path() } else { folder };
    let ran = launcher.run(&BuildProgram { words: &words, folder: within, env: &[], log: &log, limit })?;
    if ran.succeeded() {
        if !known {
            std::fs::rename(&partial, &there).map_err(|error| Fault::unwritable(&there, error))?;
        }
        return Ok(there);
    }
    let message = message_of_git(&log, began).unwrap_or_else(|| ran.ending_text());
    if known {
        remarks.push((
            "not-fetched",
            format!("‘{url}’ could not be reached ({message}): these are the versions fetched before"),
        ));
        return Ok(there);
    }
    Err(Fault::usage(format!(
        "cannot clone ‘{url}’: {message}; check the address and the connection, or name a local clone with --repo"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_are_named_by_their_last_part_and_distinguished() {
        assert_eq!(last_part("https://example.org/a/tool.git"), "tool");
        assert_eq!(last_part("git@example.org:a/tool.git"), "tool");
        assert_eq!(last_part("/home/me/tool/.git"), "tool");
        assert_ne!(key("/a/tool"), key("/b/tool"));
        assert!(is_url("ssh://host/x") && is_url("git@host:x") && !is_url("/a/b") && !is_url("../b"));
    }
}
