//! The command line of `scruple run`.

use crate::cli::shared_args::{ResultArgs, StoreArgs};
use crate::cli::values;
use crate::command::deciding::Deciding;
use clap::Args;
use scruple_core::default_margins;
use std::path::PathBuf;

/// Weigh commands side by side.
///
/// Each command is one argument. Scruple splits it into words as a shell would, and launches it without a shell. The
/// commands are interleaved: every block launches each of them once, in an order drawn from the seed. Time is read from
/// launches without instruments; memory and allocations are read in separate launches.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  scruple run 'gzip -k -c big.txt' 'zstd -c big.txt'
  scruple run -L level 1,6,9 'gzip -{level} -c big.txt'
  scruple run -P size 1000 5000 -D 1000 './sort {size}'
  scruple run --limit 'malloc.bytes<4MB' --limit 'time.cpu<+3%' ./old ./new
  scruple run -S sh 'sort big.txt | uniq -c'
")]
pub struct RunArgs {
    /// The commands to weigh (default: the [[command]]s of scruple.toml).
    #[arg(value_name = "COMMAND")]
    pub commands: Vec<String>,
    /// What and how long to measure.
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// What surrounds each launch.
    #[command(flatten)]
    pub hooks: HookArgs,
    /// Parameters.
    #[command(flatten)]
    pub scan: ScanArgs,
    /// How the programs are launched.
    #[command(flatten)]
    pub launch: LaunchArgs,
    /// Where results go.
    #[command(flatten)]
    pub results: ResultArgs,
    /// Where runs are kept.
    #[command(flatten)]
    pub store: StoreArgs,
    /// Play readings from a file instead of measuring (for tests).
    #[arg(long, hide = true, value_name = "FILE")]
    pub scripted: Option<PathBuf>,
}

/// What and how long to measure.
#[derive(Args, Debug)]
#[command(next_help_heading = "Sampling")]
pub struct SamplingArgs {
    /// Launch each command this many times first, without measuring.
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    pub warmup: u32,
    /// Launch each command this many times, in all passes together.
    ///
    /// The first launch is for time, the second for memory, the next ones for counts. With 9 or more, at least six are
    /// for time; with 15 or more, at least three are for each other pass. With --time-only all launches are for time.
    /// `-m N -M N` times exactly N blocks and adds the other passes. Launches for the warm-up and for --memory-map are
    /// not included.
    #[arg(short, long, value_name = "N", conflicts_with_all = ["min_runs", "max_runs"])]
    pub runs: Option<u32>,
    /// Measure at least this many blocks, even if the budget ends earlier.
    #[arg(short, long, value_name = "N", hide_short_help = true)]
    pub min_runs: Option<u32>,
    /// Measure at most this many blocks.
    #[arg(short = 'M', long, value_name = "N", hide_short_help = true)]
    pub max_runs: Option<u32>,
    /// Spend about this long in all passes together, even if no verdict is reached.
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub budget: String,
    /// Treat differences within this margin as the same.
    #[arg(long, value_name = "PERCENT", default_value_t = values::percent(default_margins::COMMANDS))]
    pub margin: String,
    /// Also weigh the reference against itself.
    ///
    /// The margin is then at least as wide as the difference that this shows.
    #[arg(long = "self")]
    pub twin: bool,
    /// The seed of every random choice; it is printed with each result.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub seed: Option<u64>,
    /// Show these metrics: keys, families such as ‘malloc’, or ‘all’.
    ///
    /// `scruple inspect metrics` lists them.
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Exit with code 1 when a metric exceeds this, such as ‘malloc.bytes<4MB’ or ‘time.cpu<+3%’.
    ///
    /// With a sign, the limit is a change from the reference in percent. A value equal to the limit keeps it. The exit
    /// code is 3 when the readings cannot tell.
    #[arg(long, value_name = "LIMIT")]
    pub limit: Vec<String>,
    /// Measure time only: no launches for memory, allocations and output.
    #[arg(long, hide_short_help = true)]
    pub time_only: bool,
    /// Count only: memory, allocations and collections, and no launches for time.
    #[arg(long, conflicts_with_all = ["time_only", "twin"], hide_short_help = true)]
    pub count_only: bool,
    /// Launch each command once more and record its memory map: by class, permission, shared or private, clean or
    /// dirty.
    #[arg(long, conflicts_with = "time_only", hide_short_help = true)]
    pub memory_map: bool,
    /// Launch each command more times, to read its live and peak memory also in requested bytes, as valgrind's DHAT
    /// counts them. malloc.live and malloc.peak count the usable bytes of blocks, which may be larger.
    #[arg(long, conflicts_with = "time_only", hide_short_help = true)]
    pub requested_peak: bool,
    /// The metrics that decide the gate, if the measurement is for a gate.
    #[arg(skip)]
    pub gate: Deciding,
}

impl SamplingArgs {
    /// The defaults, for verbs with fewer options of their own.
    pub fn within(budget: &str, margin: &str) -> SamplingArgs {
        SamplingArgs {
            warmup: 0,
            runs: None,
            min_runs: None,
            max_runs: None,
            budget: budget.to_owned(),
            margin: margin.to_owned(),
            twin: false,
            seed: None,
            metrics: Vec::new(),
            limit: Vec::new(),
            time_only: false,
            count_only: false,
            memory_map: false,
            requested_peak: false,
            gate: Deciding::default(),
        }
    }
}

/// What surrounds each launch.
#[derive(Args, Debug)]
#[command(next_help_heading = "Before and after launches")]
pub struct HookArgs {
    /// Run this in a shell before each launch.
    ///
    /// Give it once for all commands, or once for each.
    #[arg(short, long, value_name = "CMD")]
    pub prepare: Vec<String>,
    /// Run this in a shell after each launch.
    ///
    /// Give it once for all commands, or once for each.
    #[arg(short = 'C', long, value_name = "CMD", hide_short_help = true)]
    pub conclude: Vec<String>,
    /// Run this in a shell once, before the first launch of any command.
    ///
    /// It runs once for each value of a parameter that it names.
    #[arg(short, long, value_name = "CMD")]
    pub setup: Option<String>,
    /// Run this in a shell once, after the last launch of all commands.
    ///
    /// It runs once for each value of a parameter that it names.
    #[arg(short, long, value_name = "CMD", hide_short_help = true)]
    pub cleanup: Option<String>,
}

/// Parameters.
#[derive(Args, Debug)]
#[command(next_help_heading = "Parameters")]
pub struct ScanArgs {
    /// Replace {VAR} by every number from MIN to MAX.
    #[arg(short = 'P', long, num_args = 3, value_names = ["VAR", "MIN", "MAX"], allow_negative_numbers = true)]
    pub parameter_scan: Vec<String>,
    /// The step of the scan.
    #[arg(
        short = 'D',
        long,
        value_name = "STEP",
        requires = "parameter_scan",
        allow_negative_numbers = true,
        hide_short_help = true
    )]
    pub parameter_step_size: Option<String>,
    /// Replace {VAR} by every value of a comma-separated list.
    ///
    /// Several lists give all combinations.
    #[arg(short = 'L', long, num_args = 2, value_names = ["VAR", "VALUES"], allow_hyphen_values = true)]
    pub parameter_list: Vec<String>,
}

/// How the programs are launched.
#[derive(Args, Debug)]
#[command(next_help_heading = "Running")]
pub struct LaunchArgs {
    /// Run commands in this shell: ‘sh’, ‘bash --norc’, or ‘none’.
    ///
    /// The cost of the shell itself is then a row of the table.
    #[arg(short = 'S', long, value_name = "SHELL")]
    pub shell: Option<String>,
    /// Run without a shell: the default; accepted for users of hyperfine.
    #[arg(short = 'N', conflicts_with = "shell", hide = true)]
    pub no_shell: bool,
    /// Continue when a command fails; with -i=1,2 only when it exits with one of these codes.
    #[arg(short, long, value_name = "CODES", num_args = 0..=1, require_equals = true, default_missing_value = "all-non-zero")]
    pub ignore_failure: Option<String>,
    /// Name a command; repeat it in the order of the commands.
    #[arg(short = 'n', long = "name", alias = "command-name", value_name = "NAME")]
    pub names: Vec<String>,
    /// Compare with this command (default: the first one given).
    #[arg(long, value_name = "CMD")]
    pub reference: Option<String>,
    /// A name for the command of --reference.
    #[arg(long, value_name = "NAME", requires = "reference", hide = true)]
    pub reference_name: Option<String>,
    /// Accepted for users of hyperfine: Scruple chooses units by the size of figures.
    #[arg(short = 'u', long, hide = true, value_name = "UNIT")]
    pub time_unit: Option<String>,
    /// Accepted for users of hyperfine: rows are in the order of the commands.
    #[arg(long, hide = true, value_name = "ORDER")]
    pub sort: Option<String>,
    /// Where standard input comes from: ‘null’, ‘inherit’, ‘pipe:FILE’, or a file.
    #[arg(long, value_name = "WHERE", default_value = "null", hide_short_help = true)]
    pub input: String,
    /// Where standard output goes: ‘null’, ‘pipe’, ‘inherit’, or a file.
    #[arg(long, value_name = "WHERE", default_value = "null", hide_short_help = true)]
    pub output: String,
    /// The same as --output=inherit; accepted for users of hyperfine.
    #[arg(long, conflicts_with = "output", hide = true)]
    pub show_output: bool,
    /// End a launch that takes longer, and treat it as failed.
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    pub time_limit: Option<String>,
    /// Launch commands with real-time priority, if the system permits it, and on these cores, if any are named
    /// (‘--shield=1’).
    #[arg(long, value_name = "CORES", num_args = 0..=1, require_equals = true, default_missing_value = "", hide_short_help = true)]
    pub shield: Option<String>,
    /// Turn off address randomisation in the memory and counting passes, so that their figures repeat.
    #[arg(long, hide_short_help = true)]
    pub no_aslr: bool,
    /// First copy each program into the work folder, all in the same way and under names of equal length.
    #[arg(long, hide_short_help = true)]
    pub pin: bool,
}
