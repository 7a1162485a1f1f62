//! Git repositories for tests, and access to their stored histories.

use crate::support::{Answer, Place};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Source of a program that makes `steps` steps, allocates `bytes` bytes, and then runs the statements `more`.
pub fn program(steps: u64, bytes: u64, more: &str) -> String {
    // Hundreds of these are compiled, which takes a quarter longer with headers.
    let declarations = match more {
        "" => "void *malloc(unsigned long);\n\n",
        _ => "#include <stdlib.h>\n#include <stdio.h>\n#include <unistd.h>",
    };
    format!(
        "{declarations}\nint main(int argc, char **argv) {{\n\
         volatile unsigned long s = 0;\nfor (unsigned long i = 0; i < {steps}UL; i++) s += i;\n\
         void *volatile p = malloc({bytes});\np = p;\n{more}\nreturn 0;\n}}\n"
    )
}

/// Build options for the program of [`Repository::commit_program`].
pub const BUILD: [&str; 4] = ["--build", "cc -O1 -o app app.c", "--artifact", "app"];

/// A git repository in a folder of a place.
pub struct Repository {
    folder: PathBuf,
    commits: std::cell::Cell<u32>,
}

impl Repository {
    /// Creates a repository without commits.
    pub fn new(place: &Place, name: &str) -> Repository {
        let folder = place.file(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let repository = Repository { folder, commits: 0.into() };
        repository.git(&["init", "--quiet", "--template=", "--initial-branch=main"]);
        // Git would start a program after each commit to see whether there is something to tidy up.
        repository.git(&["config", "maintenance.auto", "false"]);
        repository
    }

    /// Runs git in the repository, without the user's configuration. The dates of commits are one minute apart.
    pub fn git(&self, words: &[&str]) -> String {
        let minute = self.commits.get();
        let date = format!("2026-01-01T{:02}:{:02}:00+0000", minute / 60, minute % 60);
        let mut command = Command::new("git");
        command.current_dir(&self.folder).args(words).stdin(Stdio::null());
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        for (name, value) in [("NAME", "Someone"), ("EMAIL", "someone@example.org"), ("DATE", &date)] {
            command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
        }
        let output = command.output().expect("git runs");
        assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).expect("a file");
    }

    /// Writes an executable file.
    pub fn write_program(&self, name: &str, text: &str) {
        self.write(name, text);
        let may_execute = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(self.folder.join(name), may_execute).expect("permissions");
    }

    /// Commits everything and returns the id of the commit.
    pub fn commit(&self, title: &str) -> String {
        self.commits.set(self.commits.get() + 1);
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", title]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Commits a program, see [`program`].
    pub fn commit_program(&self, title: &str, steps: u64, bytes: u64, more: &str) -> String {
        self.write(".gitignore", "app\n");
        self.write("app.c", &program(steps, bytes, more));
        self.commit(title)
    }

    /// Commits one version for each number of bytes that the program is to allocate. Returns the ids.
    pub fn commit_allocations(&self, bytes: impl IntoIterator<Item = u64>) -> Vec<String> {
        let commit = |(index, bytes)| self.commit_program(&format!("version {index}"), 10, bytes, "");
        bytes.into_iter().enumerate().map(commit).collect()
    }
}

impl Place {
    /// Runs `scruple history` on the repository `repo` with [`BUILD`] and the command `./app`.
    pub fn history(&self, words: &[&str]) -> Answer {
        self.run(["history", "--repo", "repo"].iter().chain(&BUILD).chain(words).chain(&["--", "./app"]))
    }

    /// The content of the build log of a version.
    pub fn log_of(&self, version: &Value) -> String {
        let path =
            version["log"].as_str().expect("a log").replace("[place]", &self.path().display().to_string());
        std::fs::read_to_string(path).expect("a log")
    }

    /// The newest history of the repository `repo`: its versions, and the run that holds its readings. Removes the
    /// version from the names of arms.
    pub fn recorded(&self) -> Recorded {
        let status = self.run(["history", "status", "--repo", "repo", "--json"]).json();
        let mut run = self.run(["show", "last", "--json"]).json();
        for arm in run["arms"].as_array_mut().expect("arms") {
            let version = arm["version"].as_str().and_then(|commit| commit.get(..10)).unwrap_or_default();
            let name = arm["name"].as_str().expect("a name");
            arm["name"] = name.strip_suffix(&format!(" @{version}")).unwrap_or(name).into();
        }
        Recorded { status, run }
    }
}

/// A stored history.
pub struct Recorded {
    status: Value,
    run: Value,
}

impl Recorded {
    pub fn versions(&self) -> &Vec<Value> {
        self.status["history"]["versions"].as_array().expect("versions")
    }

    /// The version whose commit has this title.
    pub fn version(&self, title: &str) -> &Value {
        let found = self.versions().iter().find(|version| version["title"] == title);
        found.unwrap_or_else(|| panic!("no version ‘{title}’ in {:#?}", self.versions()))
    }

    pub fn states(&self) -> Vec<&str> {
        self.versions().iter().filter_map(|version| version["state"].as_str()).collect()
    }

    /// The state in which the run ended.
    pub fn ended(&self) -> &str {
        self.run["run"]["state"].as_str().expect("a state")
    }

    /// All arms of the run.
    pub fn arms(&self) -> &Vec<Value> {
        self.run["arms"].as_array().expect("arms")
    }

    /// The readings of a metric at the version with this title; empty if it has none. The history must have one
    /// subject.
    pub fn readings(&self, title: &str, metric: &str) -> Vec<f64> {
        let commit = &self.version(title)["commit"];
        let arm = self.arms().iter().find(|arm| arm["version"] == *commit);
        let readings = arm.and_then(|arm| arm["metrics"][metric]["readings"].as_array());
        readings.map_or(Vec::new(), |readings| readings.iter().filter_map(Value::as_f64).collect())
    }

    /// Like [`Recorded::readings`], for one of several subjects.
    pub fn readings_of(&self, title: &str, subject: &str, metric: &str) -> Vec<f64> {
        let readings = self.figure(title, subject, metric)["readings"].clone();
        readings.as_array().map_or(Vec::new(), |readings| readings.iter().filter_map(Value::as_f64).collect())
    }

    /// The reason why a metric of a subject is absent at a version, or an empty string.
    pub fn absent(&self, title: &str, subject: &str, metric: &str) -> String {
        self.figure(title, subject, metric)["absent"].as_str().unwrap_or("").to_owned()
    }

    fn figure(&self, title: &str, subject: &str, metric: &str) -> Value {
        let commit = &self.version(title)["commit"];
        let is_it =
            |arm: &&Value| arm["version"] == *commit && arm["name"] == subject && arm["role"] == "subject";
        let arm = self.arms().iter().find(is_it);
        arm.map_or(Value::Null, |arm| arm["metrics"][metric].clone())
    }

    /// The number of readings of a metric over all arms.
    pub fn count(&self, metric: &str) -> u64 {
        let of = |arm: &Value| arm["metrics"][metric]["readings"].as_array().map_or(0, Vec::len);
        self.arms().iter().map(|arm| of(arm) as u64).sum()
    }

    pub fn remarks(&self) -> Vec<&str> {
        let warnings = self.run["warnings"].as_array().expect("warnings");
        warnings.iter().filter_map(|warning| warning["code"].as_str()).collect()
    }
}

/// The blocks of an arm's readings of wall time.
pub fn blocks(arm: &Value) -> Vec<u64> {
    let wall = &arm["metrics"]["time.wall"];
    let readings = wall["readings"].as_array().map_or(0, Vec::len) as u64;
    let blocks = |blocks: &Vec<Value>| blocks.iter().filter_map(Value::as_u64).collect();
    wall["blocks"].as_array().map_or_else(|| (0..readings).collect(), blocks)
}
