//! Converts the words of the command line into arms, and the jobs that weigh them.

use super::args::{HookArgs, LaunchArgs, RunArgs};
use super::hooks::Surroundings;
use super::parameters::{Parameters, combinations, extend, named, substitute};
use super::shell::{Shell, words};
use crate::cli::values::duration;
use crate::command::ignored_failures::IgnoredFailures;
use crate::config::Config;
use crate::fault::Fault;
use scruple_core::harmless_text::plain;
use scruple_core::plural::counted;
use scruple_core::subject::{Arm, Parameter, Role, Subject};
use scruple_measure::command::Job;
use scruple_measure::empty_program::write_empty_program;
use scruple_measure::launcher::Shield;
use scruple_measure::program::Program;
use scruple_measure::streams::{Input, Output};
use scruple_stats::sorting;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An arm with its job and its hooks.
#[derive(Debug)]
pub struct Prepared {
    /// The arm, without readings.
    pub arm: Arm,
    /// The job that launches the arm.
    pub job: Job,
    /// The shell commands that run around the launches of the arm.
    pub hooks: Hooks,
}

/// The shell commands that run around the launches of one arm.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    /// The command that runs before each launch.
    pub prepare: Option<String>,
    /// The command that runs after each launch.
    pub conclude: Option<String>,
}

/// The name of the arm that launches an empty program.
pub const TARE: &str = "(empty program)";
/// The name of the arm that is a second copy of the reference.
pub const TWIN: &str = "(reference again)";

/// A command before its parameters are replaced by values.
struct CommandTemplate {
    /// The text of the command, with parameters in braces.
    pub command: String,
    pub name: Option<String>,
    pub prepare: Option<String>,
    /// The index of the command among those of the command line; `None` for a reference that is not one of them.
    pub place: Option<usize>,
    /// The combinations of parameter values at which the command is weighed.
    pub combinations: Vec<Parameters>,
}

/// Returns every arm that the command line or the configuration requests, with the reference first, and the shell in
/// which they run.
pub fn prepare(args: &RunArgs, config: &Config) -> Result<(Vec<Prepared>, Shell), Fault> {
    let folder = std::env::current_dir().map_err(|error| {
        Fault::usage(format!("cannot determine the working folder: {error}; change to one that exists"))
    })?;
    let base = base_job(&args.launch, &folder)?;
    let templates = templates(args, config)?;
    check_parameters(args, &templates)?;
    let names = CommandNames::of(args, &templates);
    check_counts(args, templates.len(), &names)?;
    let filled = |template: &CommandTemplate| -> Vec<String> {
        template.combinations.iter().map(|params| substitute(&template.command, params)).collect()
    };
    let shell = Shell::of(&args.launch, templates.iter().flat_map(filled))?;
    let mut order: Vec<usize> = (0..templates.len()).collect();
    sorting::by_key(&mut order, |index| templates[*index].place);
    let mut prepared = Vec::new();
    for (index, template) in templates.iter().enumerate() {
        for (combination, params) in template.combinations.iter().enumerate() {
            let words = substitute(&template.command, params);
            let configured = template.name.as_ref().map(|name| named(name, params));
            let given = names.given(index, combination, params);
            let name = given.or(configured).unwrap_or_else(|| words.clone());
            // A name must fit on one line of a table.
            let name = plain(&name);
            let mut one = prepare_one(&name, &words, shell.words.as_deref(), &base)?;
            one.arm.params =
                params.iter().map(|(name, text)| (name.clone(), Parameter::parse(text))).collect();
            let place = order.iter().position(|other| *other == index).unwrap_or(index);
            one.hooks = hooks_of(&args.hooks, template.prepare.as_ref(), place, params);
            prepared.push(one);
        }
    }
    number_same_names(&mut prepared);
    Ok((prepared, shell))
}

/// Returns the hooks that run once around the launches of each arm, in the order of the arms; empty if there are none.
pub fn surroundings(args: &RunArgs, config: &Config) -> Result<Vec<Surroundings>, Fault> {
    let hooks = &args.hooks;
    if hooks.setup.is_none() && hooks.cleanup.is_none() {
        return Ok(Vec::new());
    }
    let templates = templates(args, config)?;
    check_parameters(args, &templates)?;
    let of = |template: &CommandTemplate, params: &Parameters| Surroundings {
        command: substitute(&template.command, params),
        setup: hooks.setup.as_ref().map(|text| substitute(text, params)),
        cleanup: hooks.cleanup.as_ref().map(|text| substitute(text, params)),
    };
    let arms = templates.iter().flat_map(|one| one.combinations.iter().map(move |params| of(one, params)));
    Ok(arms.collect())
}

/// Checks that every parameter is used, because the same command would otherwise be weighed repeatedly.
fn check_parameters(args: &RunArgs, templates: &[CommandTemplate]) -> Result<(), Fault> {
    let hooks = &args.hooks;
    let texts = templates.iter().flat_map(|one| [Some(&one.command), one.prepare.as_ref()]).flatten();
    let texts: Vec<&String> = texts.chain(&hooks.prepare).chain(&hooks.conclude).collect();
    let scanned = args.scan.parameter_scan.first().into_iter();
    let mut names = scanned.chain(args.scan.parameter_list.iter().step_by(2));
    let Some(name) = names.find(|name| !texts.iter().any(|text| text.contains(&format!("{{{name}}}"))))
    else {
        return Ok(());
    };
    let once = [&hooks.setup, &hooks.cleanup];
    Err(Fault::usage(match once.into_iter().flatten().any(|text| text.contains(&format!("{{{name}}}"))) {
        true => format!(
            "only --setup or --cleanup uses the parameter ‘{name}’: every --setup runs before the first launch, so all \
             launches would be alike; write {{{name}}} into the command as well, or use --prepare"
        ),
        false => {
            format!("the parameter ‘{name}’ is used in no command: write {{{name}}} where its value is to go")
        }
    }))
}

/// Returns the commands of the command line, or those of the configuration if there are none.
fn templates(args: &RunArgs, config: &Config) -> Result<Vec<CommandTemplate>, Fault> {
    let combinations = combinations(&args.scan)?;
    let mut commands: Vec<(Option<usize>, &String)> =
        args.commands.iter().enumerate().map(|(place, command)| (Some(place), command)).collect();
    let reference = args.launch.reference.as_ref();
    if let Some(reference) = reference {
        let among = commands.iter().position(|(_, command)| *command == reference);
        let place = among.map(|place| commands.remove(place).0).unwrap_or_default();
        commands.insert(0, (place, reference));
    }
    if !args.commands.is_empty() {
        let template = |(index, (place, command)): (usize, (Option<usize>, &String))| CommandTemplate {
            command: command.clone(),
            name: args.launch.reference_name.clone().filter(|_| index == 0 && reference.is_some()),
            prepare: None,
            place,
            combinations: combinations.clone(),
        };
        return Ok(commands.into_iter().enumerate().map(template).collect());
    }
    let mut configured: Vec<CommandTemplate> = config
        .commands()
        .into_iter()
        .enumerate()
        .map(|(place, command)| CommandTemplate {
            place: Some(place),
            combinations: command
                .params
                .iter()
                .fold(combinations.clone(), |all, (name, values)| extend(&all, name, values)),
            command: command.run,
            name: Some(command.name),
            prepare: command.prepare,
        })
        .collect();
    if let Some(reference) = reference {
        let is_it = |one: &CommandTemplate| one.name.as_ref() == Some(reference) || one.command == *reference;
        let Some(place) = configured.iter().position(is_it) else {
            return Err(Fault::usage(format!(
                "the reference ‘{reference}’ is not one of the commands of scruple.toml: give --reference the name of one, or add commands"
            )));
        };
        configured[..=place].rotate_right(1);
    }
    match configured.is_empty() {
        true => Err(Fault::usage(format!(
            "name at least one command, such as `scruple run 'gzip -c file' 'zstd -c file'`, or put [[command]]s into \
             scruple.toml{}",
            taken_as_value().unwrap_or_default()
        ))),
        false => Ok(configured),
    }
}

/// Returns a sentence that says that the last word of a command line without commands is the value of an option.
fn taken_as_value() -> Option<String> {
    let word = std::env::args_os().next_back()?.to_string_lossy().into_owned();
    (word != "run" && !word.starts_with('-'))
        .then(|| format!("; ‘{}’ is the value of an option here", plain(&word)))
}

/// Creates the arm that runs the shell without a command, if a shell is used.
pub fn shell_arm(shell: &Shell, model: &Job) -> Result<Option<Prepared>, Fault> {
    let Some(shell) = &shell.words else { return Ok(None) };
    let name = format!("({} -c '')", shell.join(" "));
    let mut one = prepare_one(&name, "", Some(shell), &silent(model))?;
    one.arm.role = Role::Shell;
    Ok(Some(one))
}

/// Writes the empty program into the folder and creates its arm.
pub fn tare_arm(folder: &Path, model: &Job) -> Result<Prepared, Fault> {
    let path = write_empty_program(folder).map_err(|error| {
        Fault::usage(format!(
            "cannot write the empty program into ‘{}’: {error}; free some space, or set XDG_CACHE_HOME to another folder",
            folder.display()
        ))
    })?;
    let argv = vec![OsString::from("empty")];
    let job = Job { name: TARE.to_owned(), program: Program { path }, argv, ..silent(model) };
    let arm = Arm::new(TARE, Subject::Command { argv: vec!["empty".to_owned()] }, Role::Tare);
    Ok(Prepared { arm, job, hooks: Hooks::default() })
}

/// Returns the job with an output other than the file to which the measured programs write.
fn silent(model: &Job) -> Job {
    let output = match &model.output {
        Output::File(_) => Output::Null,
        other => other.clone(),
    };
    Job { output, ..model.clone() }
}

/// Creates a second copy of the reference.
pub fn twin_arm(reference: &Prepared) -> Prepared {
    let mut arm = Arm::new(TWIN, reference.arm.subject.clone(), Role::Twin);
    arm.params = reference.arm.params.clone();
    let job = Job { name: TWIN.to_owned(), ..reference.job.clone() };
    Prepared { arm, job, hooks: reference.hooks.clone() }
}

/// The names that -n gives. They belong to the commands in the order of the command line, whichever of these is the
/// reference. A reference that is not one of the commands takes the first name if there are enough names.
struct CommandNames<'a> {
    given: &'a [String],
    /// The templates that receive names, in order: the index of each, and its number of arms.
    of: Vec<(usize, usize)>,
}

impl CommandNames<'_> {
    fn of<'a>(args: &'a RunArgs, templates: &[CommandTemplate]) -> CommandNames<'a> {
        let given = args.launch.names.as_slice();
        let mut order: Vec<usize> = (0..templates.len()).collect();
        sorting::by_key(&mut order, |index| templates[*index].place);
        let arms = |index: usize| (index, templates[index].combinations.len());
        let mut of: Vec<(usize, usize)> = order.into_iter().map(arms).collect();
        let others: usize = of.iter().skip(1).map(|(_, arms)| arms).sum();
        let outside = of.first().is_some_and(|(first, _)| templates[*first].place.is_none());
        let has_name = args.launch.reference_name.is_some();
        if outside && (has_name || (given.len() != of.len() && given.len() <= others)) {
            of.remove(0);
        }
        CommandNames { given, of }
    }

    fn room(&self) -> usize {
        self.of.iter().map(|(_, arms)| arms).sum()
    }

    /// Returns the name of an arm, which is identified by its template and the index of its combination.
    fn given(&self, template: usize, combination: usize, params: &Parameters) -> Option<String> {
        let place = self.of.iter().position(|(index, _)| *index == template)?;
        // If there is one name for each command, the parameters are appended. If there is one for each arm, it is used
        // unchanged.
        if self.given.len() == self.of.len() {
            return self.given.get(place).map(|name| named(name, params));
        }
        let before: usize = self.of[..place].iter().map(|(_, arms)| arms).sum();
        self.given.get(before + combination).cloned()
    }
}

fn check_counts(args: &RunArgs, commands: usize, names: &CommandNames<'_>) -> Result<(), Fault> {
    for (flag, given) in [("--prepare", args.hooks.prepare.len()), ("--conclude", args.hooks.conclude.len())]
    {
        if given > 1 && given != commands {
            return Err(Fault::usage(format!(
                "{flag} was given {given} times for {}: give it once, or once for each command",
                counted(commands, "command")
            )));
        }
    }
    if names.given.iter().any(|name| name.trim().is_empty()) {
        return Err(Fault::usage("a name that -n gives is empty: give one that a table can show"));
    }
    if names.given.len() > names.room() {
        return Err(Fault::usage(format!(
            "{} were given with -n for {}: leave some out",
            counted(names.given.len(), "name"),
            counted(names.room(), "command")
        )));
    }
    Ok(())
}

fn prepare_one(name: &str, command: &str, shell: Option<&[String]>, base: &Job) -> Result<Prepared, Fault> {
    let argv = match shell {
        Some(shell) => {
            let mut argv = shell.to_vec();
            argv.extend(["-c".to_owned(), command.to_owned()]);
            argv
        }
        None => words(command)?,
    };
    let program = Program::find(argv[0].as_ref(), &base.folder)
        .map_err(|error| Fault::usage(format!("cannot weigh ‘{name}’: {error}")))?;
    let job = Job {
        name: name.to_owned(),
        program,
        argv: argv.iter().map(OsString::from).collect(),
        ..base.clone()
    };
    Ok(Prepared {
        arm: Arm::new(name, Subject::Command { argv }, Role::Subject),
        job,
        hooks: Hooks::default(),
    })
}

/// Parses the exit codes that are ignored, the `CODES` of `--ignore-failure`.
pub fn ignored(codes: Option<&str>) -> Result<IgnoredFailures, Fault> {
    match codes {
        None => Ok(IgnoredFailures::Nothing),
        Some("all-non-zero") => Ok(IgnoredFailures::Everything),
        Some(codes) => {
            let code = |text: &str| {
                text.trim().parse().map_err(|_| {
                    Fault::usage(format!(
                        "‘{text}’ is not an exit code: write -i=1,2, or -i alone for every code"
                    ))
                })
            };
            codes.split(',').map(code).collect::<Result<_, _>>().map(IgnoredFailures::Codes)
        }
    }
}

fn base_job(args: &LaunchArgs, folder: &Path) -> Result<Job, Fault> {
    let input = match args.input.as_str() {
        "null" => Input::Null,
        "inherit" | "-" => Input::Inherit,
        text => match text.strip_prefix("pipe:") {
            Some(file) => Input::Pipe(readable(folder.join(file))?),
            None => Input::File(readable(folder.join(text))?),
        },
    };
    let output = match args.output.as_str() {
        _ if args.show_output => Output::Inherit,
        "null" => Output::Null,
        "inherit" => Output::Inherit,
        "pipe" => Output::Pipe,
        file => Output::File(folder.join(file)),
    };
    if let (Input::File(from) | Input::Pipe(from), Output::File(to)) = (&input, &output)
        && to.is_file()
        && from.canonicalize().ok() == to.canonicalize().ok()
    {
        let to = to.display();
        return Err(Fault::usage(format!(
            "the output would overwrite the input ‘{to}’: name another file with --output"
        )));
    }
    Ok(Job {
        name: String::new(),
        program: Program { path: PathBuf::new() },
        argv: Vec::new(),
        env: Vec::new(),
        counted_env: None,
        folder: folder.to_owned(),
        input,
        output,
        time_limit: args.time_limit.as_deref().map(duration).transpose()?,
        fixed_addresses: args.no_aslr,
        shield: args.shield.as_deref().map(shield).transpose()?,
    })
}

fn readable(path: PathBuf) -> Result<PathBuf, Fault> {
    match std::fs::File::open(&path) {
        Ok(_) => Ok(path),
        Err(error) => Err(Fault::usage(format!(
            "cannot read the input ‘{}’: {error}; name a file that can be read",
            path.display()
        ))),
    }
}

fn shield(cores: &str) -> Result<Shield, Fault> {
    let cores = cores
        .split(',')
        .filter(|part| !part.is_empty())
        .map(|part| {
            let core: usize = part
                .parse()
                .map_err(|_| Fault::usage(format!("‘{part}’ is not a core’s number: write --shield=0,1")))?;
            match std::path::Path::new(&format!("/sys/devices/system/cpu/cpu{core}")).exists() {
                true => Ok(core),
                false => {
                    Err(Fault::usage(format!("there is no core {core} on this machine: `lscpu` lists them")))
                }
            }
        })
        .collect::<Result<_, _>>()?;
    Ok(Shield { cores, cap: Duration::from_secs(10) })
}

fn hooks_of(args: &HookArgs, configured: Option<&String>, index: usize, params: &Parameters) -> Hooks {
    let pick = |given: &[String]| given.get(index).or(given.first()).map(|text| substitute(text, params));
    Hooks {
        prepare: pick(&args.prepare).or(configured.map(|text| substitute(text, params))),
        conclude: pick(&args.conclude),
    }
}

/// Appends a number to the names of later arms that have the same name, so that a table distinguishes them.
fn number_same_names(prepared: &mut [Prepared]) {
    for index in 1..prepared.len() {
        let (before, rest) = prepared.split_at_mut(index);
        let one = &mut rest[0];
        let taken = |name: &str| before.iter().any(|other| other.arm.name == name);
        if taken(&one.arm.name) {
            let name =
                (2..).map(|n| format!("{} #{n}", one.arm.name)).find(|name| !taken(name)).unwrap_or_default();
            one.arm.name.clone_from(&name);
            one.job.name = name;
        }
    }
}
