//! Determines the subjects at each version, from the command line or the configuration.

use crate::command::parameters;
use crate::config::{Config, ConfiguredCommand};
use crate::fault::Fault;
use crate::versions::tree_path::TreePath;
use crate::versions::two_revisions::Remarks;
use crate::versions::{Recipe, SubjectTemplate, smaller_size};
use scruple_core::harmless_text::list_names;
use scruple_stats::sorting::SortedMap;
use std::path::Path;

/// The subjects on the command line.
pub struct RequestedSubjects<'a> {
    /// The verb, as an example of a command line begins.
    pub verb: &'static str,
    /// The words after `--`.
    pub command: &'a [String],
    /// Whether the words after `--` are a bench program.
    pub bench: bool,
    /// A name for the command after `--`. Without such a command, the names of the configured subjects to select.
    pub names: &'a [String],
}

impl RequestedSubjects<'_> {
    /// Returns the command after `--`, or the configured commands and bench programs, each with its parameters.
    pub fn subjects(&self, config: &Config) -> Result<Vec<SubjectTemplate>, Fault> {
        let here = SortedMap::from([("here".to_owned(), here(config)?)]);
        let mut found = match (self.command.is_empty(), self.names) {
            (false, [] | [_]) => {
                let template = SubjectTemplate::new(self.command, self.names.first().map(String::as_str))?;
                vec![SubjectTemplate { bench: self.bench, ..template }]
            }
            (false, _) => return Err(Fault::usage("one command has one name: give -n once")),
            (true, _) => self.configured(config)?,
        };
        for template in &mut found {
            template.words.iter_mut().for_each(|word| *word = parameters::substitute(word, &here));
        }
        match found.is_empty() {
            false => Ok(found),
            true => Err(Fault::usage(format!(
                "name the command to weigh after --, such as `scruple {} --build make --artifact app -- ./app`, or put \
                 [[command]]s or a [[bench]] into scruple.toml",
                self.verb
            ))),
        }
    }

    fn configured(&self, config: &Config) -> Result<Vec<SubjectTemplate>, Fault> {
        let (commands, benches) = (config.commands(), config.benches());
        let all = commands.iter().map(|one| one.name.as_str()).chain(benches.iter().map(|one| one.0));
        let all: Vec<&str> = all.collect();
        if let Some(unknown) = self.names.iter().find(|name| !all.contains(&name.as_str())) {
            let known = match all.is_empty() {
                true => "it names none".to_owned(),
                false => format!("it has {}", list_names(&all)),
            };
            return Err(Fault::usage(format!(
                "scruple.toml has no command or bench program ‘{unknown}’: {known}"
            )));
        }
        let wanted = |name: &str| self.names.is_empty() || self.names.iter().any(|other| other == name);
        let mut found = Vec::new();
        for command in commands.iter().filter(|command| wanted(&command.name)) {
            found.extend(configured(command)?);
        }
        for (name, program) in benches.into_iter().filter(|bench| wanted(bench.0)) {
            let template = SubjectTemplate::new(&[program.to_owned()], Some(name))?;
            found.push(SubjectTemplate { bench: true, ..template });
        }
        Ok(found)
    }
}

/// Returns the yardstick: the command that is launched in the blocks of each version.
pub fn yardstick(
    words: &str,
    subjects: &[SubjectTemplate],
    config: &Config,
) -> Result<SubjectTemplate, Fault> {
    if subjects.iter().all(|subject| subject.bench) {
        return Err(Fault::usage(
            "a yardstick is for commands, and only bench programs are weighed: leave out --yardstick",
        ));
    }
    let here = SortedMap::from([("here".to_owned(), here(config)?)]);
    let mut template = SubjectTemplate::new(&[words.to_owned()], None)?;
    template.words.iter_mut().for_each(|word| *word = parameters::substitute(word, &here));
    if subjects.iter().any(|subject| subject.name == template.name) {
        return Err(Fault::usage(format!("‘{}’ is weighed itself: name another --yardstick", template.name)));
    }
    Ok(SubjectTemplate { yardstick: true, ..template })
}

/// Returns the folder that `{here}` stands for.
fn here(config: &Config) -> Result<String, Fault> {
    let folder = std::path::absolute(config.folder()).or_else(|_| std::env::current_dir());
    let folder =
        folder.map_err(|error| Fault::usage(format!("cannot determine the working folder: {error}")))?;
    Ok(folder.display().to_string())
}

/// The endings of files that an interpreter runs.
const SCRIPTS: [&str; 14] =
    ["class", "cjs", "jar", "js", "lua", "mjs", "php", "pl", "py", "rb", "scm", "sh", "ts", "wasm"];

/// The code of a remark on a program that is the same for all versions.
const SHARED: &str = "shared-program";

/// Returns a sentence for each word of a command that names a file of the working folder which is not kept with a
/// build: commands run in a folder that has only the artefacts, so they may fail. Returns a remark on each program that
/// is named by `{here}`, for the results: every version runs the present one, with what lies beside it.
pub fn files_outside_builds(
    recipe: &Recipe,
    subjects: &[SubjectTemplate],
    config: &Config,
) -> Result<(Vec<String>, Remarks), Fault> {
    let folder = here(config)?;
    let relative = |word: &str| word.trim_start_matches("./").trim_end_matches('/').to_owned();
    let is_kept = |word: &str| {
        let mut kept = recipe.artefacts.iter().map(TreePath::below_top);
        recipe.artefacts.is_empty() || kept.any(|kept| Path::new(&relative(word)).starts_with(kept))
    };
    let (mut left_behind, mut shared) = (Vec::new(), Remarks::new());
    for subject in subjects {
        for (at, word) in subject.words.iter().enumerate() {
            let path = Path::new(word);
            let ending = path.extension().and_then(|ending| ending.to_str());
            let is_code = at == 0 || ending.is_some_and(|ending| SCRIPTS.contains(&ending));
            let keep = "keep it with each version by --artifact";
            if path.is_relative() && Path::new(&folder).join(word).is_file() && !is_kept(word) {
                let data = if is_code { String::new() } else { format!("write {HERE}/{word}, or ") };
                left_behind.push(format!(
                    "‘{}’ runs in a folder that has only the artefacts, and ‘{word}’ is not one of them: {data}{keep}",
                    subject.name
                ));
            } else if let Some(below) = path.strip_prefix(&folder).ok().filter(|below| {
                // There are tools that are installed for the project, such as its interpreter.
                is_code && path.is_file() && !below.starts_with(".venv") && !below.starts_with("node_modules")
            }) {
                let below = below.display();
                shared.push((SHARED, format!(
                    "every version of ‘{}’ runs the present {HERE}/{below}, and what that loads from beside it: to weigh \
                     changes of these, {keep}, and write {below}",
                    subject.name
                )));
            }
        }
    }
    Ok((left_behind, shared))
}

/// Replaces `{here}` by the folder in all shell commands of a recipe, and in its variables.
pub(super) fn substitute_here(recipe: &mut Recipe, config: &Config) -> Result<(), Fault> {
    let folder = here(config)?;
    let variables = recipe.overlays.iter_mut().flat_map(|overlay| overlay.env.values_mut());
    for value in recipe.env.values_mut().chain(variables) {
        *value = value.replace(HERE, &folder);
    }
    let overlays = recipe.overlays.iter_mut().flat_map(|overlay| overlay.steps.iter_mut().flatten());
    let commands =
        recipe.steps.iter_mut().chain(&mut recipe.check).chain(&mut recipe.toolchain).chain(overlays);
    for command in commands.filter(|command| in_shell(command, "") != **command) {
        if shell_words::quote(&folder) != folder {
            return Err(Fault::usage(format!(
                "‘{folder}’ cannot replace {HERE} in ‘{command}’, because a shell would split it: move it to a folder \
                 whose name has no spaces or quotes, or write the path yourself"
            )));
        }
        *command = in_shell(command, &folder);
    }
    Ok(())
}

const HERE: &str = "{here}";

/// Replaces `{here}` by the folder. `${here}` stays, because it is a variable of the shell.
fn in_shell(command: &str, folder: &str) -> String {
    let mut parts = command.split(HERE);
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        filled.push_str(if filled.ends_with('$') { HERE } else { folder });
        filled.push_str(part);
    }
    filled
}

fn configured(command: &ConfiguredCommand) -> Result<Vec<SubjectTemplate>, Fault> {
    if command.prepare.is_some() {
        return Err(Fault::usage(format!(
            "the command ‘{}’ of scruple.toml has a prepare step, which versions cannot have: name the command to weigh after --",
            command.name
        )));
    }
    let mut combinations = vec![SortedMap::new()];
    for (name, values) in &command.params {
        combinations = parameters::extend(&combinations, name, values);
    }
    let template = |params: SortedMap<String, String>| {
        let mut template = SubjectTemplate::new(
            std::slice::from_ref(&command.run),
            Some(&parameters::named(&command.name, &params)),
        )?;
        template.params = params;
        Ok(template)
    };
    combinations.into_iter().map(template).collect()
}

/// Checks that the size of the work is a parameter of a command, and a whole number wherever it is set.
pub fn check_work_size(recipe: &Recipe, subjects: &[SubjectTemplate]) -> Result<(), Fault> {
    let Some(size) = &recipe.size else { return Ok(()) };
    let braced = format!("{{{size}}}");
    let names = |template: &&SubjectTemplate| {
        !template.bench && template.words.iter().any(|word| word.contains(&braced))
    };
    let Some(one) = subjects.iter().find(names) else {
        return Err(Fault::usage(format!(
            "the size of the work is to be ‘{size}’, but no command has {braced} in it: write it there, or leave size out"
        )));
    };
    let overlays = recipe.overlays.iter().map(|overlay| &overlay.params);
    let own = subjects.iter().filter(names).map(|template| &template.params);
    let values: Vec<&String> =
        overlays.chain(own).chain([&recipe.params]).filter_map(|params| params.get(size)).collect();
    if !recipe.params.contains_key(size) && !one.params.contains_key(size) {
        return Err(Fault::usage(format!(
            "the size of the work ‘{size}’ has no value: give it one under [history], such as params = {{ {size} = 100000 }}"
        )));
    }
    match values.iter().find(|value| smaller_size(value).is_none()) {
        Some(value) => Err(Fault::usage(format!(
            "the size of the work must be a whole number of at least 2, but scruple.toml sets ‘{size}’ to ‘{value}’"
        ))),
        None => Ok(()),
    }
}

/// Returns the subjects with these names, and the yardstick. Without names, returns all subjects.
pub fn named(subjects: Vec<SubjectTemplate>, names: &[String]) -> Result<Vec<SubjectTemplate>, Fault> {
    let known: Vec<&str> = subjects.iter().map(|subject| subject.name.as_str()).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Fault::usage(format!(
            "the history has no subject ‘{unknown}’: it has {}",
            list_names(&known)
        )));
    }
    let wanted =
        |subject: &SubjectTemplate| names.is_empty() || subject.yardstick || names.contains(&subject.name);
    Ok(subjects.into_iter().filter(wanted).collect())
}
