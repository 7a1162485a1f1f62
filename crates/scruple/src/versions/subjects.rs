//! The subjects of a history: commands and bench programs whose parameters may differ from version to version.

use super::recipe::BuildSettings;
use crate::command::parameters;
use crate::command::shell;
use crate::fault::Fault;
use scruple_core::harmless_text::plain;
use scruple_core::subject::{Arm, Parameter, Role, Subject};
use scruple_measure::command::Job;
use scruple_measure::program::Program;
use scruple_measure::streams::{Input, Output};
use scruple_stats::sorting::SortedMap;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// A command or a bench program. It is the same at every version except for its parameters.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct SubjectTemplate {
    /// The name of the subject.
    pub name: String,
    /// The words of the command line, with parameters in braces.
    pub words: Vec<String>,
    /// The values of the parameters, unless the settings of a version override them.
    pub params: SortedMap<String, String>,
    /// Whether the subject is a bench program, whose cases are weighed.
    pub bench: bool,
    /// Whether the subject is a yardstick, which is launched in the blocks of every version and never judged.
    pub yardstick: bool,
}

/// This text is part of the identity of a history. To keep the identity of older histories, a field that they lack is
/// only written if it is set.
impl fmt::Debug for SubjectTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Template");
        text.field("name", &self.name).field("words", &self.words);
        text.field("params", &self.params).field("bench", &self.bench);
        if self.yardstick {
            text.field("yardstick", &true);
        }
        text.finish()
    }
}

/// The ratio of the smaller size of the work to the requested size. At a tenth, the difference of the two costs is
/// hardly noisier than the larger cost alone; at a half it would be twice as noisy.
const SMALLER: f64 = 0.1;

impl SubjectTemplate {
    /// Creates a template from these words. A single word is split as a shell would.
    pub fn new(words: &[String], name: Option<&str>) -> Result<SubjectTemplate, Fault> {
        let split = match words {
            [one] => shell::words(one)?,
            _ => words.to_vec(),
        };
        // A name must fit on one line of a table.
        let name = plain(&name.map_or_else(|| split.join(" "), str::to_owned));
        Ok(SubjectTemplate { name, words: split, params: SortedMap::new(), bench: false, yardstick: false })
    }

    /// Returns the parameters of each launch of a block at a version. There is a second launch, with less work, if the
    /// recipe declares a parameter as the size of the work.
    pub fn launches(&self, settings: &BuildSettings) -> Vec<SortedMap<String, String>> {
        let mut params = self.params.clone();
        params.extend(settings.params.clone());
        // Parameters that the command does not use are removed.
        params.retain(|name, _| self.words.iter().any(|word| word.contains(&format!("{{{name}}}"))));
        let smaller = settings.size.as_ref().filter(|_| !self.bench).and_then(|name| {
            let mut smaller = params.clone();
            let size = smaller.get_mut(name)?;
            *size = smaller_size(size)?;
            Some(smaller)
        });
        std::iter::once(params).chain(smaller).collect()
    }

    /// Returns the words of the first launch at a version.
    pub fn argv(&self, settings: &BuildSettings) -> Vec<String> {
        self.launches(settings).first().map(|params| self.filled(params)).unwrap_or_default()
    }

    fn filled(&self, params: &SortedMap<String, String>) -> Vec<String> {
        self.words.iter().map(|word| parameters::substitute(word, params)).collect()
    }

    /// Returns the arm of one launch at a version, without readings.
    pub fn arm(&self, commit: &str, settings: &BuildSettings, launch: usize) -> Arm {
        let launches = self.launches(settings);
        let params = &launches[launch.min(launches.len() - 1)];
        let role = if self.yardstick { Role::Yardstick } else { Role::Subject };
        let mut arm = Arm::new(&self.name, Subject::Command { argv: self.filled(params) }, role);
        arm.version = Some(commit.to_owned());
        arm.params = params.iter().map(|(name, text)| (name.clone(), Parameter::parse(text))).collect();
        arm
    }

    /// Returns the arms at a version, without readings: one for each launch. A bench program has one for its build
    /// costs, and one for those costs of its processes that belong to no case. The arms of its cases are added when
    /// they are known.
    pub fn arms(&self, commit: &str, settings: &BuildSettings) -> Vec<Arm> {
        let arm = |launch| self.arm(commit, settings, launch);
        match self.bench {
            false => (0..self.launches(settings).len()).map(arm).collect(),
            true => vec![arm(0), Arm { role: Role::Tare, ..arm(0) }],
        }
    }

    /// Returns how to start one launch among the artefacts in `folder`, or why that is impossible.
    pub fn job(
        &self,
        version: &str,
        settings: &BuildSettings,
        launch: usize,
        folder: &Path,
        time_limit: Option<Duration>,
    ) -> Result<Job, String> {
        let launches = self.launches(settings);
        let argv = self.filled(&launches[launch.min(launches.len() - 1)]);
        let program = Program::find(argv[0].as_ref(), folder).map_err(|error| error.to_string())?;
        Ok(Job {
            name: format!("{} @{version}", self.name),
            program,
            argv: argv.iter().map(OsString::from).collect(),
            env: settings.env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            folder: folder.to_owned(),
            input: Input::Null,
            output: Output::Null,
            time_limit,
            counted_env: None,
            fixed_addresses: false,
            shield: None,
        })
    }
}

/// Returns a smaller size of the work, if the text is a whole number of at least 2.
pub fn smaller_size(size: &str) -> Option<String> {
    let size: u64 = size.trim().parse().ok().filter(|size| *size >= 2)?;
    Some(((size as f64 * SMALLER).round() as u64).max(1).to_string())
}
