//! The words of the command line about builds of versions.

use super::Recipe;
use super::build_process::SHARED;
use super::requested_subjects::substitute_here;
use super::tree_path::TreePath;
use crate::cli::values;
use crate::config::Config;
use crate::fault::Fault;
use clap::Args;
use std::path::Path;

/// The default time limit of a step and of the check.
const BUILD_LIMIT: &str = "30min";
/// The default time limit of a launch of a command.
pub const TIME_LIMIT: &str = "5min";

/// How versions are built.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Building")]
pub struct BuildArgs {
    /// The repository: a path or a URL (default: the one of the working folder).
    #[arg(long, value_name = "PATH_OR_URL", hide_short_help = true)]
    pub repo: Option<String>,
    /// Build with this step, run by a shell in the tree; give several in order.
    #[arg(long, value_name = "STEP")]
    pub build: Vec<String>,
    /// Keep this file or folder of the tree (default: the whole tree).
    #[arg(long, value_name = "PATH")]
    pub artifact: Vec<TreePath>,
    /// Run this after the build; a version for which it fails is not weighed.
    #[arg(long = "check-with", value_name = "CMD")]
    pub check: Option<String>,
    /// Set a variable for steps, check and command.
    #[arg(long, value_name = "NAME=VALUE", hide_short_help = true)]
    pub env: Vec<String>,
    /// Commands whose output identifies toolchains; usually set in scruple.toml.
    #[arg(long, value_name = "CMD", hide = true)]
    pub toolchain: Vec<String>,
    /// Remove what earlier builds left before each build, so that build times can be compared.
    #[arg(long, hide_short_help = true)]
    pub clean: bool,
    /// End a step or a check that takes longer; usually set in scruple.toml.
    #[arg(long, value_name = "TIME", default_value = BUILD_LIMIT, hide = true)]
    pub build_limit: String,
    /// Reject a version whose command prints something other than that of the first version.
    #[arg(long, hide_short_help = true)]
    pub same_output: bool,
    /// End a launch of a command that takes longer.
    #[arg(long, value_name = "TIME", default_value = TIME_LIMIT, hide_short_help = true)]
    pub time_limit: String,
}

impl BuildArgs {
    /// Returns the words of a command line with the same settings, without those that are defaults.
    pub fn words(&self) -> Vec<String> {
        let BuildArgs { repo, build, artifact, check, env, toolchain, clean, .. } = self;
        let mut words = Vec::new();
        let mut add = |option: &str, value: &str| words.extend([option.to_owned(), value.to_owned()]);
        repo.iter().for_each(|repo| add("--repo", repo));
        build.iter().for_each(|step| add("--build", step));
        artifact.iter().for_each(|path| add("--artifact", &path.to_string()));
        check.iter().for_each(|check| add("--check-with", check));
        env.iter().for_each(|variable| add("--env", variable));
        toolchain.iter().for_each(|command| add("--toolchain", command));
        let limits = [
            ("--build-limit", &self.build_limit, BUILD_LIMIT),
            ("--time-limit", &self.time_limit, TIME_LIMIT),
        ];
        limits
            .iter()
            .filter(|(_, limit, usual)| limit != usual)
            .for_each(|(option, limit, _)| add(option, limit));
        words.extend(clean.then(|| "--clean".to_owned()));
        words
    }
}

/// Returns the base recipe with the changes of the command line, in which `{here}` is replaced.
pub fn recipe(args: &BuildArgs, base: Recipe, config: &Config) -> Result<Recipe, Fault> {
    let mut env = base.env;
    for pair in &args.env {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| Fault::usage(format!("‘{pair}’ sets no variable: write --env NAME=VALUE")))?;
        env.insert(name.to_owned(), value.to_owned());
    }
    for name in SHARED {
        let outside = |value: &&String| Path::new(value.as_str()).is_absolute() || value.contains("..");
        if let Some(folder) = env.get(name).filter(outside) {
            return Err(Fault::usage(format!(
                "{name} is set to ‘{folder}’, which versions would share, and one could be weighed as the other: leave it out, \
                 or name a folder of the tree"
            )));
        }
    }
    let limit = match base.limit {
        Some(limit) if args.build_limit == BUILD_LIMIT => limit,
        _ => values::duration(&args.build_limit)?,
    };
    let mut recipe = Recipe {
        steps: either(&args.build, base.steps),
        artefacts: either(&args.artifact, base.artefacts),
        check: args.check.clone().or(base.check),
        env,
        toolchain: either(&args.toolchain, base.toolchain),
        clean: args.clean || base.clean,
        limit: Some(limit),
        overlays: base.overlays,
        params: base.params,
        size: base.size,
    };
    substitute_here(&mut recipe, config)?;
    Ok(recipe)
}

/// The values of an option, or else those of the configuration.
fn either<T: Clone>(given: &[T], base: Vec<T>) -> Vec<T> {
    if given.is_empty() { base } else { given.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::description;
    use clap::Command;

    /// A flattened group of options lends its heading to the fields after it.
    #[test]
    fn only_options_of_a_build_stand_under_its_heading() {
        fn check(command: &Command, building: &[String]) {
            for argument in command.get_arguments() {
                let stray = argument.get_help_heading() == Some("Building")
                    && !building.contains(&argument.get_id().to_string());
                assert!(!stray, "{} of {}", argument.get_id(), command.get_name());
            }
            command.get_subcommands().for_each(|part| check(part, building));
        }
        let own = BuildArgs::augment_args(Command::new("build"));
        let building: Vec<String> =
            own.get_arguments().map(|argument| argument.get_id().to_string()).collect();
        check(&description(), &building);
    }
}
