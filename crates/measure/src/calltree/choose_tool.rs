//! Chooses one of Valgrind's tools, and says why a better one cannot be used.

use super::install::{Tool, Valgrind};
use super::unavailable::Unavailable;
use std::path::{Path, PathBuf};

/// Valgrind's tools, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValgrindTool {
    /// Our own tool: calling contexts and allocations in all processes of a tree.
    Calltree,
    /// Callgrind: functions and call edges in one process.
    Callgrind,
    /// Cachegrind: only the total, in one process.
    Cachegrind,
}

impl ValgrindTool {
    /// The tool's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            ValgrindTool::Calltree => "the call tree",
            ValgrindTool::Callgrind => "callgrind",
            ValgrindTool::Cachegrind => "cachegrind",
        }
    }
}

/// A tool that works on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenTool {
    pub(super) launcher: PathBuf,
    pub(super) library: Option<PathBuf>,
    /// The tool that is used.
    pub kind: ValgrindTool,
    /// Valgrind's version.
    pub version: String,
    /// The better tools that cannot be used, each with its reason.
    pub refused: Vec<(ValgrindTool, Unavailable)>,
}

impl ChosenTool {
    /// The best tool that works here. The call tree is compiled for the installed Valgrind if necessary, and kept in
    /// `cache`.
    ///
    /// # Errors
    /// Fails with the reason if no tool works.
    pub fn find(cache: &Path) -> Result<ChosenTool, Unavailable> {
        match Tool::prepare(cache) {
            Ok(tool) => Ok(ChosenTool::of(&tool)),
            Err(Unavailable::NoValgrind) => Err(Unavailable::NoValgrind),
            Err(why) => ChosenTool::stock(&Valgrind::find()?, vec![(ValgrindTool::Calltree, why)]),
        }
    }

    /// The counter that uses the call tree.
    pub fn of(tool: &Tool) -> ChosenTool {
        ChosenTool {
            launcher: tool.launcher.clone(),
            library: Some(tool.library.clone()),
            kind: ValgrindTool::Calltree,
            version: tool.version.clone(),
            refused: Vec::new(),
        }
    }

    /// The next best tool for a program on which this one failed; `None` if there is none. `why` is what it said.
    pub fn weaker(&self, why: &str) -> Option<ChosenTool> {
        let refused = self.refused.iter().cloned().chain([(self.kind, Unavailable::Failed(why.to_owned()))]);
        ChosenTool::stock(&Valgrind::find().ok()?, refused.collect()).ok()
    }

    /// Callgrind, without the attempt to compile the call tree; `None` without Valgrind.
    #[cfg(test)]
    pub(crate) fn callgrind() -> Option<ChosenTool> {
        let unwanted = (ValgrindTool::Calltree, Unavailable::Failed("it is not wanted".to_owned()));
        ChosenTool::stock(&Valgrind::find().ok()?, vec![unwanted]).ok()
    }

    /// A counter that uses a tool which came with Valgrind; `refused` says why better ones cannot be used.
    pub(super) fn stock(
        valgrind: &Valgrind,
        mut refused: Vec<(ValgrindTool, Unavailable)>,
    ) -> Result<ChosenTool, Unavailable> {
        let all = [(ValgrindTool::Callgrind, "callgrind"), (ValgrindTool::Cachegrind, "cachegrind")];
        for (kind, name) in all {
            if refused.iter().any(|(known, _)| *known == kind) {
                continue;
            }
            if valgrind.has_tool(name) {
                let (launcher, version) = (valgrind.launcher.clone(), valgrind.version.clone());
                return Ok(ChosenTool { launcher, library: None, kind, version, refused });
            }
            refused.push((kind, Unavailable::NoTool(name)));
        }
        Err(Unavailable::NoTool("callgrind"))
    }

    /// The tool's name, and why no better one is used, in one phrase.
    pub fn describe(&self) -> String {
        let name = match self.kind {
            ValgrindTool::Calltree => format!("the call tree (valgrind {})", self.version),
            kind => format!("{} (valgrind {})", kind.name(), self.version),
        };
        let [(_, first), rest @ ..] = self.refused.as_slice() else { return name };
        let rest: String = rest.iter().map(|(tool, why)| format!("; {}: {why}", tool.name())).collect();
        format!("{name}, because {first}{rest}")
    }
}
