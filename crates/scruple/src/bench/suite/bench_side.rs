//! One of the bench programs of a suite.

use scruple_core::protocol::Hello;
use scruple_measure::bench::BenchStart;
use scruple_measure::program::Program;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// One of the bench programs that are compared. Usually there is only one.
#[derive(Debug)]
pub struct BenchSide {
    /// The name of the program in tables, if there are several.
    pub label: Option<String>,
    /// The prefix of the names of its cases, if other programs may have cases of the same names.
    pub prefix: Option<String>,
    /// The file to execute.
    pub program: Program,
    /// The words of the command line.
    pub argv: Vec<OsString>,
    /// The working folder of the program; `None` means that of Scruple.
    pub folder: Option<PathBuf>,
    /// The variables added to Scruple's own environment.
    pub env: Vec<(OsString, OsString)>,
    /// The whole environment of counting processes, if it has to be the same in every run.
    pub counted_env: Option<Vec<(OsString, OsString)>>,
    /// The description that the program gave of itself.
    pub hello: Option<Hello>,
}

impl BenchSide {
    /// Creates the side of a program that starts in Scruple's working folder, before its description is known.
    pub fn new(label: Option<String>, program: Program, argv: Vec<OsString>) -> BenchSide {
        let (env, hello) = (Vec::new(), None);
        BenchSide { label, prefix: None, program, argv, folder: None, env, counted_env: None, hello }
    }

    pub(super) fn start<'a>(
        &'a self,
        padding: usize,
        count_in: Option<&'a Path>,
        counting: bool,
    ) -> BenchStart<'a> {
        let pinned = self.counted_env.as_ref().filter(|_| counting);
        BenchStart {
            path: &self.program.path,
            argv: &self.argv,
            padding,
            count_in,
            counting_env: self.hello.as_ref().map(|hello| &hello.counting_environment),
            folder: self.folder.as_deref(),
            env: pinned.unwrap_or(&self.env),
            whole_env: pinned.is_some(),
        }
    }
}
