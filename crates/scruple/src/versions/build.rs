//! Builds one version: checks out its tree, applies overlays, runs steps and the check, and keeps the artefacts.

use super::artefacts::Artefacts;
use super::build_process::{BuildLauncher, BuildProgram, BuildProgramResult, append_to_log, message_of_git};
use super::cache::Cache;
use super::recipe::{BuildSettings, ResolvedRecipe};
use super::source_repository::ObjectSource;
use crate::fault::Fault;
use crate::git::Repository;
use scruple_core::history::VersionState;
use scruple_measure::launcher::Ending;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time limit of each git command in the tree. It is generous because fetching submodules may take long.
const GIT_LIMIT: Duration = Duration::from_secs(600);

/// The outcome of a build.
pub enum BuildOutcome {
    /// The version was built and may be weighed.
    Ready(Artefacts),
    /// The version may not be weighed.
    Failed(BuildFailure),
}

/// Why a version may not be weighed. The log has the details.
pub struct BuildFailure {
    /// The state of the version.
    pub state: VersionState,
    /// The reason, as a clause.
    pub why: String,
    /// Whether git could not provide the tree, so that no build step was reached.
    pub without_tree: bool,
}

/// Builds versions, one at a time.
pub struct VersionBuilder {
    /// The folder of trees, logs and artefacts.
    pub cache: Cache,
    /// The launcher that runs the build steps.
    pub launcher: BuildLauncher,
    recipe: ResolvedRecipe,
    origin: ObjectSource,
    /// Whether the tree was newly created and only git has worked in it since.
    untouched: bool,
}

/// Why a build ended early: because of the version, or because of a fault that is not the version's.
enum BuildStop {
    Failed(BuildFailure),
    Fault(Fault),
}

impl From<Fault> for BuildStop {
    fn from(fault: Fault) -> BuildStop {
        BuildStop::Fault(fault)
    }
}

/// Creates the stop for a version that does not get past its build or its check.
fn failed(state: VersionState, why: String) -> BuildStop {
    BuildStop::Failed(BuildFailure { state, why, without_tree: false })
}

impl VersionBuilder {
    /// Creates a builder for the versions of a repository.
    pub fn new(
        cache: Cache,
        launcher: BuildLauncher,
        recipe: ResolvedRecipe,
        origin: ObjectSource,
    ) -> VersionBuilder {
        VersionBuilder { cache, launcher, recipe, origin, untouched: false }
    }

    /// Returns the recipe by which versions are built.
    pub fn recipe(&self) -> &ResolvedRecipe {
        &self.recipe
    }

    /// Returns where the objects of the repository are stored.
    pub fn origin(&self) -> &ObjectSource {
        &self.origin
    }

    /// Returns the text that distinguishes different builds of the same tree: the tree and the settings of its commit.
    pub fn build_key(&self, commit: &str, tree: &str) -> String {
        format!("{tree} {}", self.recipe.of(commit).settings_key)
    }

    /// Returns the build settings of a commit.
    pub fn settings(&self, commit: &str) -> BuildSettings {
        self.recipe.of(commit)
    }

    /// Builds a commit as [`VersionBuilder::build`] does, but in a second tree. There, the build system cannot see the
    /// files that it kept of the first version, and cannot mistake them for those of the second. A new second tree
    /// begins as a copy of the first one, so that dependencies are not built twice.
    pub fn build_in_second_tree(&mut self, commit: &str, tree: &str) -> Result<BuildOutcome, Fault> {
        if !self.cache.use_second_tree()? {
            self.copy_first_tree()?;
        }
        let built = self.build(commit, tree);
        self.cache.use_first_tree()?;
        built
    }

    /// Copies the first tree to the second one.
    fn copy_first_tree(&mut self) -> Result<(), Fault> {
        let [tree, first, _] = self.cache.trees();
        let (from, to, log) =
            (first.display().to_string(), tree.display().to_string(), self.cache.log("tree"));
        let words = ["cp", "-a", "--reflink=auto", &from, &to];
        let folder = self.cache.folder().to_owned();
        let child =
            BuildProgram { words: &words, folder: &folder, env: &[], log: &log, limit: Some(GIT_LIMIT) };
        if !self.launcher.run(&child)?.succeeded() {
            // The copy only saves time: an empty tree works as well.
            append_to_log(&log, "the tree could not be copied, and begins empty\n")?;
            remove(&tree).map_err(|error| Fault::unwritable(&tree, error))?;
        }
        Ok(())
    }

    /// Builds a commit, unless it was built before.
    pub fn build(&mut self, commit: &str, tree: &str) -> Result<BuildOutcome, Fault> {
        let settings = self.recipe.of(commit);
        let build_key = self.build_key(commit, tree);
        if let Some(found) = self.cache.find(&build_key)? {
            return Ok(BuildOutcome::Ready(Artefacts { reused: true, ..found }));
        }
        let log = self.cache.log(commit);
        match fs::remove_file(&log) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Fault::unwritable(&log, error));
            }
            _ => {}
        }
        match self.build_in_tree(commit, &settings, &log) {
            Ok(artefacts) => {
                self.cache.remember(&build_key, &artefacts)?;
                Ok(BuildOutcome::Ready(artefacts))
            }
            Err(BuildStop::Fault(fault)) => Err(fault),
            Err(BuildStop::Failed(failure)) => {
                self.cache.check_space()?;
                Ok(BuildOutcome::Failed(failure))
            }
        }
    }

    /// Builds a commit again from nothing and discards the result. Returns how long the steps took, or why one failed.
    pub fn build_again(&mut self, commit: &str) -> Result<Result<Duration, String>, Fault> {
        let (settings, log) = (self.recipe.of(commit), self.cache.log(commit));
        match self.steps_in_tree(commit, &settings, &log) {
            Ok(time) => Ok(Ok(time)),
            Err(BuildStop::Fault(fault)) => Err(fault),
            Err(BuildStop::Failed(failure)) => {
                self.cache.check_space()?;
                Ok(Err(failure.why))
            }
        }
    }

    fn build_in_tree(
        &mut self,
        commit: &str,
        settings: &BuildSettings,
        log: &Path,
    ) -> Result<Artefacts, BuildStop> {
        let time = self.steps_in_tree(commit, settings, log)?;
        if let Some(check) = self.recipe.recipe().check.clone() {
            self.shell("check", &check, VersionState::CheckFailed, settings, log)?;
        }
        self.cache.keep(&self.recipe.recipe().artefacts, time)?.map_err(|missing| {
            failed(VersionState::BuildFailed, format!("the build did not produce the artefact ‘{missing}’"))
        })
    }

    /// Runs the build steps in the commit's tree.
    fn steps_in_tree(
        &mut self,
        commit: &str,
        settings: &BuildSettings,
        log: &Path,
    ) -> Result<Duration, BuildStop> {
        self.provide_tree(commit, log).map_err(|stop| match stop {
            BuildStop::Failed(failure) => BuildStop::Failed(BuildFailure { without_tree: true, ..failure }),
            fault => fault,
        })?;
        self.overlay(settings, log)?;
        // An interrupted step leaves files that a later build would consider complete.
        let mark = self.mark();
        fs::write(&mark, commit).map_err(|error| Fault::unwritable(&mark, error))?;
        self.untouched = false;
        let mut time = Duration::ZERO;
        for step in &settings.steps {
            time += self.shell("step", step, VersionState::BuildFailed, settings, log)?;
        }
        self.unmark()?;
        Ok(time)
    }

    /// Checks the commit out in a tree that is sound.
    fn provide_tree(&mut self, commit: &str, log: &Path) -> Result<(), BuildStop> {
        self.prepare_tree(commit)?;
        match self.check_out(commit, log) {
            // An earlier build or a killed git may have damaged the tree, which is not the fault of this commit.
            Err(BuildStop::Failed(_)) if !self.untouched => {
                append_to_log(log, "Scruple removed the tree and checks out the commit again\n")?;
                let tree = self.cache.tree();
                remove(&tree).map_err(|error| Fault::unwritable(&tree, error))?;
                self.prepare_tree(commit)?;
                self.check_out(commit, log)
            }
            other => other,
        }
    }

    /// Returns the path of the marker file, which exists while a build is under way and after one was interrupted.
    fn mark(&self) -> PathBuf {
        self.cache.folder().join("building")
    }

    fn unmark(&self) -> Result<(), Fault> {
        let mark = self.mark();
        match fs::remove_file(&mark) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Fault::unwritable(&mark, error))
            }
            _ => Ok(()),
        }
    }

    /// Returns the folder of objects that the source lacks. It is outside the tree because the tree may be created
    /// again.
    pub fn objects(&self) -> PathBuf {
        self.cache.folder().join("objects")
    }

    /// Creates the repository of the tree if it does not exist, and removes locks. It borrows the objects of the
    /// source.
    pub fn prepare_tree(&mut self, commit: &str) -> Result<(), Fault> {
        let (tree, log) = (self.cache.tree(), self.cache.log("tree"));
        let git = tree.join(".git");
        let failed = |error| Fault::unwritable(&tree, error);
        let found = tree.exists();
        fs::create_dir_all(&tree).map_err(failed)?;
        let borrowed = git.join("objects/info/alternates");
        let own = git.symlink_metadata().is_ok_and(|data| data.is_dir());
        if !own || !borrowed.exists() {
            // The remains of a killed git, including its locks, are removed first.
            match if own { fs::remove_dir_all(&git) } else { fs::remove_file(&git) } {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
            let format = if commit.len() > 40 { "--object-format=sha256" } else { "--object-format=sha1" };
            // A tree that is only built needs none of the template's hooks.
            let words = ["git", "init", "--quiet", "--template=", format, "--initial-branch=none", "."];
            let child =
                BuildProgram { words: &words, folder: &tree, env: &[], log: &log, limit: Some(GIT_LIMIT) };
            let ran = self.launcher.run(&child)?;
            if !ran.succeeded() {
                self.cache.check_space()?;
                let place = tree.display();
                return Err(Fault::usage(format!(
                    "cannot make the tree ‘{place}’: git {}; see ‘{}’",
                    ran.ending_text(),
                    log.display()
                )));
            }
            self.untouched = !found;
        }
        fs::create_dir_all(self.objects()).map_err(failed)?;
        fs::create_dir_all(git.join("objects/info")).map_err(failed)?;
        let folders = [self.origin.common.join("objects"), self.objects()];
        let folders: String = folders.iter().map(|folder| format!("{}\n", folder.display())).collect();
        fs::write(&borrowed, folders).map_err(failed)?;
        super::source_repository::unlock(&git).map_err(failed)
    }

    /// Checks the commit out. Ignored files stay, so that builds are incremental. Artefacts of other versions are
    /// removed, so that they cannot pass for the result of a build that produced none.
    fn check_out(&mut self, commit: &str, log: &Path) -> Result<(), BuildStop> {
        let tree = self.cache.tree();
        for name in &self.recipe.recipe().artefacts {
            name.remove_file(&tree)
                .map_err(|error| Fault::unwritable(&tree.join(name.below_top()), error))?;
        }
        self.git(&["checkout", "--quiet", "--force", "--detach", commit, "--"], "check out its tree", log)?;
        let cut_short = self.mark().exists();
        let how = if self.recipe.recipe().clean || cut_short { "-ffdxq" } else { "-ffdq" };
        self.git(&["clean", how], "clean its tree", log)?;
        self.unmark()?;
        if tree.join(".gitmodules").exists() {
            self.submodules(log)?;
        }
        Ok(())
    }

    /// Fetches each submodule from the clone beside the source's own, if there is one, or else from its configured URL.
    fn submodules(&mut self, log: &Path) -> Result<(), BuildStop> {
        let words =
            ["config", "--file", ".gitmodules", "--name-only", "--get-regexp", r"^submodule\..*\.path$"];
        let names = Repository::at(&self.cache.tree()).ask(words).unwrap_or_default();
        let origin = self.origin.address.clone();
        self.git(&["config", "remote.origin.url", &origin], "set the origin of its tree", log)?;
        let names = names.lines().filter_map(|line| line.strip_prefix("submodule.")?.strip_suffix(".path"));
        for name in names {
            let clone = self.origin.common.join("modules").join(name);
            if clone.is_dir() {
                let (key, url) = (format!("submodule.{name}.url"), clone.display().to_string());
                self.git(&["config", &key, &url], "set the URL of a submodule", log)?;
            }
        }
        let update = [
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "update",
            "--init",
            "--recursive",
            "--force",
        ];
        self.git(&update, "fetch its submodules", log)
    }

    fn git(&mut self, words: &[&str], what: &str, log: &Path) -> Result<(), BuildStop> {
        let tree = self.cache.tree();
        let words: Vec<&str> = ["git", "-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0"]
            .iter()
            .chain(words)
            .copied()
            .collect();
        // If a build has removed the repository of the tree, git must not use the repository of a parent folder.
        let ceiling = ("GIT_CEILING_DIRECTORIES".to_owned(), self.cache.folder().display().to_string());
        let child =
            BuildProgram { words: &words, folder: &tree, env: &[ceiling], log, limit: Some(GIT_LIMIT) };
        let began = log.metadata().map_or(0, |data| data.len());
        let ran = self.launcher.run(&child)?;
        if ran.succeeded() {
            return Ok(());
        }
        let message = message_of_git(log, began).filter(|_| matches!(ran.ending, Ending::Exited(_)));
        let why = message.unwrap_or_else(|| format!("git {}", ran.ending_text()));
        Err(failed(VersionState::BuildFailed, format!("cannot {what}: {why}")))
    }

    fn overlay(&mut self, settings: &BuildSettings, log: &Path) -> Result<(), BuildStop> {
        for patch in &settings.patches {
            let name = patch.display().to_string();
            append_to_log(log, &format!("+ git apply {name}\n"))?;
            self.git(&["apply", "--whitespace=nowarn", &name], &format!("apply the patch ‘{name}’"), log)?;
        }
        for one in &settings.replace {
            let tree = self.cache.tree();
            let inside = one.file.inside(&tree).map_err(|error| Fault::unwritable(&tree, error))?;
            let Some(path) = inside else {
                let why = format!(
                    "the overlay would replace text behind a link: ‘{}’ leads out of the tree",
                    one.file
                );
                append_to_log(log, &format!("{why}\n"))?;
                return Err(failed(VersionState::BuildFailed, why));
            };
            let text = fs::read_to_string(&path).unwrap_or_default();
            if !text.contains(&one.from) {
                let why = format!("the text that the overlay replaces is not in ‘{}’", one.file);
                append_to_log(log, &format!("{why}: {}\n", one.from))?;
                return Err(failed(VersionState::BuildFailed, why));
            }
            fs::write(&path, text.replace(&one.from, &one.to))
                .map_err(|error| Fault::unwritable(&path, error))?;
        }
        Ok(())
    }

    fn shell(
        &mut self,
        what: &str,
        command: &str,
        state: VersionState,
        settings: &BuildSettings,
        log: &Path,
    ) -> Result<Duration, BuildStop> {
        append_to_log(log, &format!("+ {command}\n"))?;
        let (tree, limit) = (self.cache.tree(), self.recipe.recipe().limit);
        let child =
            BuildProgram { words: &["sh", "-c", command], folder: &tree, env: &settings.env, log, limit };
        let ran: BuildProgramResult = self.launcher.run(&child)?;
        let how = ran.ending_text();
        match ran.ending {
            Ending::Exited(0) => Ok(ran.wall),
            Ending::TimedOut => Err(failed(VersionState::TimedOut, format!("the {what} ‘{command}’ {how}"))),
            // A step that exited by itself has left the tree in a state that its build system can continue from.
            Ending::Exited(_) => {
                self.unmark()?;
                Err(failed(state, format!("the {what} ‘{command}’ {how}")))
            }
            _ => Err(failed(state, format!("the {what} ‘{command}’ {how}"))),
        }
    }
}

/// Removes a folder with its contents, even if a build has removed the permission to do so.
fn remove(folder: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            open_up(folder)?;
            fs::remove_dir_all(folder)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn open_up(folder: &Path) -> std::io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}
