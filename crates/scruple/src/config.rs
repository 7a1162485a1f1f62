//! `scruple.toml`: the commands, bench programs and limits of a project.

use crate::farm::config::FarmEntry;
use crate::fault::Fault;
use crate::versions::config::{BuildEntry, HistoryEntry};
use scruple_core::limit::Limit;
use scruple_core::line_number::in_line;
use scruple_core::metric::{Metric, metric};
use scruple_core::nearest_word::nearest;
use scruple_stats::sorting::SortedMap;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The content of the file. Every part is optional.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    #[serde(default)]
    command: Vec<CommandEntry>,
    #[serde(default)]
    bench: Vec<BenchEntry>,
    /// The table is also read under its former name, `[budgets]`.
    #[serde(default, alias = "budgets")]
    limits: SortedMap<String, LimitEntry>,
    #[serde(default)]
    store: StoreEntry,
    #[serde(default)]
    /// The settings for building versions.
    pub build: BuildEntry,
    #[serde(default)]
    /// The settings that select versions.
    pub history: HistoryEntry,
    #[serde(default)]
    /// The settings for the machines that measure.
    pub farm: FarmEntry,
    /// A table that other programs may use; Scruple ignores it.
    #[serde(default, rename = "metadata")]
    _metadata: serde::de::IgnoredAny,
}

#[derive(Debug, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table [[command]] with a name and a command line: run = \"./app\""
)]
struct CommandEntry {
    name: String,
    run: String,
    #[serde(default)]
    params: SortedMap<String, Vec<toml::Value>>,
    prepare: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table [[bench]] with a name and a program")]
struct BenchEntry {
    name: String,
    program: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { max = \"4 MB\" }")]
struct LimitEntry {
    max: toml::Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table [store] with a url")]
struct StoreEntry {
    url: Option<String>,
}

/// The configuration of the project around the working folder; empty if there is no file.
#[derive(Debug, Default)]
pub struct Config {
    /// The path of the file; empty if there is none.
    pub path: PathBuf,
    /// The content of the file.
    pub file: ConfigFile,
}

/// A command in the configuration.
#[derive(Clone, Debug)]
pub struct ConfiguredCommand {
    /// The name of the command.
    pub name: String,
    /// The command line, with parameters in braces.
    pub run: String,
    /// The values of each parameter.
    pub params: Vec<(String, Vec<String>)>,
    /// The shell command that runs before each launch.
    pub prepare: Option<String>,
}

impl Config {
    /// Searches for the file in the working folder and its parents, and reads it.
    pub fn find() -> Result<Config, Fault> {
        let here = std::env::current_dir()
            .map_err(|error| Fault::usage(format!("cannot determine the working folder: {error}")))?;
        match here.ancestors().map(|folder| folder.join("scruple.toml")).find(|path| path.is_file()) {
            Some(path) => Config::read(&path),
            None => Ok(Config::default()),
        }
    }

    fn read(path: &Path) -> Result<Config, Fault> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Fault::usage(format!("cannot read ‘{}’: {error}", path.display())))?;
        Config::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Config, Fault> {
        let file = toml::from_str(text).map_err(|error| {
            let advice = unknown_key(error.message())
                .map_or(String::new(), |nearest| format!("; did you mean ‘{nearest}’?"));
            let message = error.message().replace("expected a sequence", "expected a list such as [\"a\"]");
            let start = error.span().map_or(0, |span| span.start);
            Fault::usage(format!("‘{}’, {}{advice}", path.display(), in_line(text, start, message)))
        })?;
        Ok(Config { path: path.to_owned(), file })
    }

    /// Returns the commands.
    pub fn commands(&self) -> Vec<ConfiguredCommand> {
        let values = |list: &[toml::Value]| list.iter().map(plain).collect();
        self.file
            .command
            .iter()
            .map(|entry| ConfiguredCommand {
                name: entry.name.clone(),
                run: entry.run.clone(),
                params: entry.params.iter().map(|(name, list)| (name.clone(), values(list))).collect(),
                prepare: entry.prepare.clone(),
            })
            .collect()
    }

    /// Returns the words of the first bench program.
    pub fn bench_program(&self) -> Result<Vec<String>, Fault> {
        match self.file.bench.first() {
            Some(entry) => shell_words::split(&entry.program).map_err(|_| {
                Fault::usage(format!(
                    "‘{}’: the program of ‘{}’ has an open quote",
                    self.path.display(),
                    entry.name
                ))
            }),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the names of the bench programs, each with its command line.
    pub fn benches(&self) -> Vec<(&str, &str)> {
        self.file.bench.iter().map(|entry| (entry.name.as_str(), entry.program.as_str())).collect()
    }

    /// Returns the folder of the file, which relative paths in the file refer to.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Returns the path of the file, if there is one.
    pub fn file_path(&self) -> Option<&Path> {
        Some(self.path.as_path()).filter(|path| !path.as_os_str().is_empty())
    }

    /// Returns the URL of the store, if the file names one.
    pub fn store(&self) -> Option<&str> {
        self.file.store.url.as_deref()
    }

    /// Returns the limits. Keys have the form `ARM.METRIC`; the arm may contain a `*`. `brought` are the metrics that
    /// programs declare themselves.
    pub fn limits(&self, brought: &[Metric]) -> Result<Vec<Limit>, Fault> {
        self.each_limit(brought).collect()
    }

    /// Returns each limit, or why it cannot be read.
    pub fn each_limit(&self, brought: &[Metric]) -> impl Iterator<Item = Result<Limit, Fault>> {
        self.file
            .limits
            .iter()
            .map(move |(key, entry)| {
                let (arm, metric) = split_key(key, brought).ok_or_else(|| {
                    // An example with the metric that is meant, if the key is one.
                    let example = metric(key).map_or("parse.malloc.bytes".to_owned(), |_| format!("*.{key}"));
                    Fault::usage(format!("‘{}’: the limit ‘{key}’ does not have the form \"ARM.METRIC\": write, for example, \"{example}\"", self.path.display()))
                })?;
                Limit::parse_among(&format!("{arm}:{metric}<={}", plain(&entry.max)), brought)
                    .map_err(|why| Fault::usage(format!("‘{}’: {why}", self.path.display())))
            })
    }

    /// Returns the names of the commands that a limit applies to.
    pub fn commands_of<'a>(&'a self, limit: &'a Limit) -> impl Iterator<Item = &'a str> {
        let names = self.file.command.iter().map(|command| command.name.as_str());
        names.filter(|name| limit.applies_to(name) || limit.arm.starts_with(name))
    }
}

/// Writes a value as on the command line.
pub fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Splits the key of a limit: `parse.malloc.bytes` is the metric `malloc.bytes` of `parse`, and `parse.instructions` the
/// metric `instructions`. The key of an unknown metric is taken to have two parts.
fn split_key<'a>(key: &'a str, brought: &[Metric]) -> Option<(&'a str, &'a str)> {
    let mut splits = key.match_indices('.').map(|(dot, _)| (&key[..dot], &key[dot + 1..]));
    let is_metric = |name: &str| metric(name).is_some() || brought.iter().any(|own| own.key == name);
    splits.clone().find(|(_, name)| is_metric(name)).or_else(|| splits.rfind(|(_, name)| name.contains('.')))
}

/// Returns the key most similar to the unknown one, of those that its table may have. The message of the parser quotes
/// them all.
fn unknown_key(message: &str) -> Option<&str> {
    let (name, expected) = message.strip_prefix("unknown field `")?.split_once('`')?;
    // Every second part is between quotes.
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    nearest(name, known.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;
    use scruple_core::metric::{Pass, Quality};
    use scruple_core::unit::Unit;
    use scruple_fuzz::Corpus;

    #[test]
    fn the_metric_of_a_limit_has_as_many_parts_as_it_is_declared_with() {
        let own = Metric::custom("app.cache.hits", Unit::Count, Quality::Exact, Pass::Counting);
        for (key, split) in [
            ("parse.instructions", Some(("parse", "instructions"))),
            ("*.malloc.bytes", Some(("*", "malloc.bytes"))),
            ("my.app.instructions", Some(("my.app", "instructions"))),
            ("zoo/ant.app.cache.hits", Some(("zoo/ant", "app.cache.hits"))),
            ("parse.maloc.bytes", Some(("parse", "maloc.bytes"))),
            ("parse.maloc", None),
        ] {
            assert_eq!(split_key(key, std::slice::from_ref(&own)), split);
        }
    }

    #[test]
    fn a_limit_of_no_arm_is_answered_with_one_of_all() {
        let config = Config::parse(Path::new("f"), "[limits]\n'memory.peak' = { max = '4 MB' }\n");
        let fault = config.and_then(|config| config.limits(&[])).err().map(|fault| fault.to_string());
        let fault = fault.expect("no arm is named");
        assert!(fault.ends_with("\"ARM.METRIC\": write, for example, \"*.memory.peak\""), "{fault}");
    }

    #[test]
    fn damaged_configurations_are_survived() {
        Corpus::named("toml").is_survived_by_text(|text| {
            if let Ok(config) = Config::parse(Path::new("scruple.toml"), text) {
                let _ = (config.commands(), config.benches(), config.limits(&[]), config.recipe());
            }
        });
    }
    #[test]
    fn an_unknown_key_is_compared_with_those_of_its_table() {
        let fault = |text: &str| Config::parse(Path::new("f"), text).err().map(|fault| fault.to_string());
        let fault = |text: &str| fault(text).expect("an unknown key");
        let of_command = "[[command]]\nname = 'one'\nrun = 'true'\n";
        assert!(fault(&format!("{of_command}prepair = 'sync'\n")).contains("did you mean ‘prepare’?"));
        assert!(
            !fault(&format!("{of_command}comand = 'x'\n")).contains("did you mean"),
            "the table has no such key"
        );
        assert!(fault("[[comand]]\nname = 'one'\n").contains("did you mean ‘command’?"));
        assert!(fault("[store]\nurls = 'x'\n").contains("did you mean ‘url’?"), "a table with one key");
        assert_eq!(
            fault("[build]\nsteps = 'make'\n"),
            "‘f’, line 2: invalid type: string \"make\", expected a list such as [\"a\"]"
        );
    }
    #[test]
    fn a_value_in_place_of_a_table_is_answered_with_what_is_expected() {
        for (text, expected) in [
            ("[limits]\n'a.malloc.bytes' = '<4MB'\n", "expected a table such as { max = \"4 MB\" }"),
            ("command = ['true']\n", "expected a table [[command]] with a name"),
            ("build = 'make'\n", "expected a table [build]"),
        ] {
            let fault = Config::parse(Path::new("f"), text).err().map(|fault| fault.to_string());
            assert!(fault.as_ref().is_some_and(|fault| fault.contains(expected)), "{fault:?}");
        }
    }
    #[test]
    fn metadata_of_other_programs_is_ignored() {
        let text = "[metadata.study]\ntitle = 'a study'\n[[bench]]\nname = 'micro'\nprogram = './micro'\n";
        let config = Config::parse(Path::new("scruple.toml"), text).expect("metadata is not read");
        assert_eq!(config.benches(), [("micro", "./micro")]);
        let text = "[meta]\ntitle = 'a study'\n";
        assert!(Config::parse(Path::new("scruple.toml"), text).is_err());
    }
}
