//! Which of Valgrind's tools is used, and why no better one.

use super::error::Unavailable;
use super::install::{Tool, Valgrind};
use std::path::{Path, PathBuf};

/// The tools, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValgrindTool {
    /// The call tree: contexts, allocations, whole trees of processes.
    Calltree,
    /// Callgrind: functions and edges, one process.
    Callgrind,
    /// Cachegrind: the total, one process.
    Cachegrind,
}

impl ValgrindTool {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            ValgrindTool::Calltree => "the call tree",
            ValgrindTool::Callgrind => "callgrind",
            ValgrindTool::Cachegrind => "cachegrind",
        }
    }
}

/// A tool that can count here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    pub(super) launcher: PathBuf,
    pub(super) library: Option<PathBuf>,
    /// Which tool.
    pub kind: ValgrindTool,
    /// Why each better tool cannot be used.
    pub version: String,
    /// Why each better tool cannot be used.
    pub refused: Vec<(ValgrindTool, Unavailable)>,
}

impl Counter {
    /// The best tool that works here; the call tree is compiled for it if necessary, and kept in `cache`.
    ///
    /// # Errors
    /// Why there is none at all.
    pub fn find(cache: &Path) -> Result<Counter, Unavailable> {
        match Tool::prepare(cache) {
            Ok(tool) => Ok(Counter::of(&tool)),
            Err(Unavailable::NoValgrind) => Err(Unavailable::NoValgrind),
            Err(why) => Counter::stock(&Valgrind::find()?, why),
        }
    }

    /// The call tree itself.
    pub fn of(tool: &Tool) -> Counter {
        Counter {
            launcher: tool.launcher.clone(),
            library: Some(tool.library.clone()),
            kind: ValgrindTool::Calltree,
            version: tool.version.clone(),
            refused: Vec::new(),
        }
    }

    /// A tool that came with Valgrind.
    pub(super) fn stock(valgrind: &Valgrind, why: Unavailable) -> Result<Counter, Unavailable> {
        let mut refused = vec![(ValgrindTool::Calltree, why)];
        for (kind, name) in [(ValgrindTool::Callgrind, "callgrind"), (ValgrindTool::Cachegrind, "cachegrind")]
        {
            if valgrind.has_tool(name) {
                let (launcher, version) = (valgrind.launcher.clone(), valgrind.version.clone());
                return Ok(Counter { launcher, library: None, kind, version, refused });
            }
            refused.push((kind, Unavailable::NoTool(name)));
        }
        Err(Unavailable::NoTool("callgrind"))
    }

    /// The tool, and why no better one is used, in one sentence.
    pub fn describe(&self) -> String {
        let name = match self.kind {
            ValgrindTool::Calltree => format!("the call tree (valgrind {})", self.version),
            kind => format!("{} (valgrind {})", kind.name(), self.version),
        };
        match self.refused.first() {
            Some((_, why)) => format!("{name}, because {why}"),
            None => name,
        }
    }
}
