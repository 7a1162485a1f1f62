//! The subjects of a history: commands and bench programs whose parameters may differ from version to version.

use super::recipe::Effective;
use crate::command::arms;
use crate::command::shell;
use crate::fault::Fault;
use scruple_core::subject::{Arm, Parameter, Role, Subject};
use scruple_measure::command::Job;
use scruple_measure::program::Program;
use scruple_measure::streams::{Input, Output};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// A command or a bench program, the same at every version except for parameters.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Template {
    /// Its name.
    pub name: String,
    /// Its words, with parameters in braces.
    pub words: Vec<String>,
    /// The values of its parameters, where the version says nothing else.
    pub params: BTreeMap<String, String>,
    /// Whether it is a bench program, whose cases are weighed.
    pub bench: bool,
    /// Whether it is a yardstick: launched beside every version, and never judged itself.
    pub yardstick: bool,
}

/// A history is identified by this text, among others: a field that older histories do not have is written only where
/// it is set.
impl fmt::Debug for Template {
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

/// The smaller size of the work is this share of the requested size. At a tenth, the difference of the two is hardly
/// noisier than the larger one by itself; at a half it would be twice as noisy.
const SMALLER: f64 = 0.1;

impl Template {
    /// A template of these words; one word alone is split as a shell would.
    pub fn new(words: &[String], name: Option<&str>) -> Result<Template, Fault> {
        let split = match words {
            [one] => shell::words(one)?,
            _ => words.to_vec(),
        };
        let name = name.map_or_else(|| split.join(" "), str::to_owned);
        Ok(Template { name, words: split, params: BTreeMap::new(), bench: false, yardstick: false })
    }

    /// The parameters at a version, once for each of its launches in a block: a second time, with less work, where the
    /// recipe declares one of them as the size of the work.
    pub fn launches(&self, effective: &Effective) -> Vec<BTreeMap<String, String>> {
        let mut params = self.params.clone();
        params.extend(effective.params.clone());
        // A parameter that the command does not use does not belong to it.
        params.retain(|name, _| self.words.iter().any(|word| word.contains(&format!("{{{name}}}"))));
        let smaller = effective.size.as_ref().filter(|_| !self.bench).and_then(|name| {
            let mut smaller = params.clone();
            let size = smaller.get_mut(name)?;
            *size = smaller_size(size)?;
            Some(smaller)
        });
        std::iter::once(params).chain(smaller).collect()
    }

    /// The words of its first launch at a version.
    pub fn argv(&self, effective: &Effective) -> Vec<String> {
        self.launches(effective).first().map(|params| self.filled(params)).unwrap_or_default()
    }

    fn filled(&self, params: &BTreeMap<String, String>) -> Vec<String> {
        self.words.iter().map(|word| arms::substitute(word, params)).collect()
    }

    /// The arm of one of its launches at a version, without readings.
    pub fn arm(&self, commit: &str, effective: &Effective, launch: usize) -> Arm {
        let launches = self.launches(effective);
        let params = &launches[launch.min(launches.len() - 1)];
        let role = if self.yardstick { Role::Yardstick } else { Role::Subject };
        let mut arm = Arm::new(&self.name, Subject::Command { argv: self.filled(params) }, role);
        arm.version = Some(commit.to_owned());
        arm.params = params.iter().map(|(name, text)| (name.clone(), Parameter::parse(text))).collect();
        arm
    }

    /// The arms at a version, without readings: one for each launch. A bench program has one for the cost of building
    /// it, and one for its processes, which is not a figure of any case; those of its cases are added when they are
    /// known.
    pub fn arms(&self, commit: &str, effective: &Effective) -> Vec<Arm> {
        let arm = |launch| self.arm(commit, effective, launch);
        match self.bench {
            false => (0..self.launches(effective).len()).map(arm).collect(),
            true => vec![arm(0), Arm { role: Role::Tare, ..arm(0) }],
        }
    }

    /// How to start it for one of its launches among the artefacts in `folder`; or why it cannot be.
    pub fn job(
        &self,
        version: &str,
        effective: &Effective,
        launch: usize,
        folder: &Path,
        time_limit: Option<Duration>,
    ) -> Result<Job, String> {
        let launches = self.launches(effective);
        let argv = self.filled(&launches[launch.min(launches.len() - 1)]);
        let program = Program::find(argv[0].as_ref(), folder).map_err(|error| error.to_string())?;
        Ok(Job {
            name: format!("{} @{version}", self.name),
            program,
            argv: argv.iter().map(OsString::from).collect(),
            env: effective.env.iter().map(|(name, value)| (name.into(), value.into())).collect(),
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

/// A size with less work, where the text is a whole number large enough for one.
pub fn smaller_size(size: &str) -> Option<String> {
    let size: u64 = size.trim().parse().ok().filter(|size| *size >= 2)?;
    Some(((size as f64 * SMALLER).round() as u64).max(1).to_string())
}
