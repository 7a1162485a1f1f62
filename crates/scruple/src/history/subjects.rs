//! What is weighed at every version: commands whose parameters may differ from version to version.

use super::recipe::Effective;
use crate::arms;
use crate::fault::Fault;
use scruple_core::subject::{Arm, Parameter, Role, Subject};
use scruple_measure::command::Job;
use scruple_measure::program::Program;
use scruple_measure::streams::{Input, Output};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// A command, the same at every version but for parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// Its name.
    pub name: String,
    /// Its words, with parameters in braces.
    pub words: Vec<String>,
    /// The values of its parameters, where the version says nothing else.
    pub params: BTreeMap<String, String>,
}

impl Template {
    /// A template of these words; one word alone is split as a shell would.
    pub fn new(words: &[String], name: Option<&str>) -> Result<Template, Fault> {
        let split = match words {
            [one] => arms::words(one)?,
            _ => words.to_vec(),
        };
        let name = name.map_or_else(|| split.join(" "), str::to_owned);
        Ok(Template { name, words: split, params: BTreeMap::new() })
    }

    /// The parameters that hold at a version.
    pub fn params(&self, effective: &Effective) -> BTreeMap<String, String> {
        let mut params = self.params.clone();
        params.extend(effective.params.clone());
        // A parameter that the command does not name is none of its own.
        params.retain(|name, _| self.words.iter().any(|word| word.contains(&format!("{{{name}}}"))));
        params
    }

    fn argv(&self, effective: &Effective) -> Vec<String> {
        let params = self.params(effective);
        self.words.iter().map(|word| arms::substitute(word, &params)).collect()
    }

    /// The arm at a version, without readings.
    pub fn arm(&self, commit: &str, effective: &Effective) -> Arm {
        let argv = self.argv(effective);
        let mut arm = Arm::new(&self.name, Subject::Command { argv }, Role::Subject);
        arm.version = Some(commit.to_owned());
        let params = self.params(effective);
        arm.params = params.iter().map(|(name, text)| (name.clone(), Parameter::parse(text))).collect();
        arm
    }

    /// How to launch it among the artefacts in `folder`; or why it cannot be.
    pub fn job(
        &self,
        version: &str,
        effective: &Effective,
        folder: &Path,
        time_limit: Option<Duration>,
    ) -> Result<Job, String> {
        let argv = self.argv(effective);
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
            fixed_addresses: false,
            shield: None,
        })
    }
}
