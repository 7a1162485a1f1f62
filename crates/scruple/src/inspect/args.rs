//! The command line of `scruple inspect`.

use crate::cli::shared_args::StoreArgs;
use crate::render::export::Export;
use clap::{Args, Subcommand, ValueEnum};
use scruple_measure::heap::SiteSampling;
use std::path::PathBuf;

/// The default of `--smallest`: growth for each unit of work that does not matter.
pub const SMALLEST: &str = "1B";

/// The subcommands of `scruple inspect`.
#[derive(Debug, Subcommand)]
pub enum InspectVerb {
    Memory(MemoryArgs),
    Leak(LeakArgs),
    Calls(CallsArgs),
    Ghc(GhcArgs),
    /// List the metrics, with their units and meanings.
    Metrics,
}

/// Show where a program's memory comes from, or the memory map of a running process.
///
/// With a command, the program is launched once. Scruple counts every block that it gets from malloc, by the place in
/// the code that requests it: bytes in use at the peak, bytes left at the end, and bytes allocated in total. The
/// program runs 5 to 30 times slower. With --sites=sampled it runs at nearly its normal speed, and shares are
/// estimated.
///
/// With --pid, Scruple shows the memory map of a process: what is shared, private, clean and dirty. With --for it
/// watches the process for that time or until it ends, and shows the map near its largest size. With --tree it also
/// watches the descendants, and shows the map of the largest process.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  scruple inspect memory -- ./app input.txt
  scruple inspect memory --export peak.svg --export memory.html -- ./app input.txt
  scruple inspect memory --sites=sampled -- ./server --once
  scruple inspect memory --export heap.pb.gz -- ./app && go tool pprof -top heap.pb.gz
  scruple inspect memory --pid 1234
  scruple inspect memory --pid 1234 --for 30s --json
  scruple run --memory-map './server --once'
")]
pub struct MemoryArgs {
    /// Show the map of this process.
    #[arg(long, value_name = "PID", conflicts_with = "command")]
    pub pid: Option<i32>,
    /// Watch the process for this long (default: read the map once).
    #[arg(long = "for", value_name = "TIME", requires = "pid")]
    pub watching: Option<String>,
    /// Watch its descendants too.
    #[arg(long, requires = "pid")]
    pub tree: bool,
    /// How sites are found: ‘exact’ counts every allocation under valgrind; ‘sampled’ records some and estimates
    /// shares.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = SitesBy::Exact, conflicts_with = "pid")]
    pub sites: SitesBy,
    /// With --sites=sampled: the mean number of allocated bytes from one sample to the next.
    #[arg(long, value_name = "BYTES", default_value_t = SiteSampling::USUAL.mean, conflicts_with = "pid")]
    pub sample_every: u64,
    /// With --sites=sampled: the seed of the random numbers that choose the samples.
    #[arg(long, value_name = "N", default_value_t = SiteSampling::USUAL.seed, conflicts_with = "pid")]
    pub seed: u64,
    /// At most this many sites; JSON has all.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, conflicts_with = "pid")]
    pub most: usize,
    /// Show the sites even if the program fails.
    #[arg(short, long, conflicts_with = "pid")]
    pub ignore_failure: bool,
    /// End the program if it takes longer.
    #[arg(long, value_name = "TIME", conflicts_with = "pid")]
    pub time_limit: Option<String>,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// Write a file. Its extension chooses the format: .svg (a flame graph of the bytes at the peak), .html, .md,
    /// .json, .collapsed, .pb.gz (pprof), .speedscope.json or .firefox.json.
    #[arg(long = "export", value_name = "FILE", conflicts_with = "pid")]
    pub export: Vec<Export>,
    /// The program and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// A way to find allocation sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SitesBy {
    /// Every allocation is counted.
    Exact,
    /// Some allocations are recorded.
    Sampled,
}

/// Count exactly what each function of a program does: instructions, calls, allocations.
///
/// The program is launched once under Scruple's call tree, which counts every instruction in user space by calling
/// context, in all its processes. The program runs 5 to 20 times slower. The whole tree can be exported for other
/// tools.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  scruple inspect calls -- ./app input.txt
  scruple inspect calls --sort allocations --lines -- ./app input.txt
  scruple inspect calls --export app.svg --export app.speedscope.json -- ./app input.txt
  scruple inspect calls --export app.callgrind -- ./app && callgrind_annotate app.callgrind
  scruple inspect calls --from cpu.pprof --export cpu.svg
")]
pub struct CallsArgs {
    /// Which functions come first.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = SortCalls::Own)]
    pub sort: SortCalls,
    /// At most this many functions and lines; JSON has all.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub most: usize,
    /// Show source lines as well, if there is debugging information.
    #[arg(long)]
    pub lines: bool,
    /// Show the counts even if the program fails.
    #[arg(short, long)]
    pub ignore_failure: bool,
    /// End the program if it takes longer.
    #[arg(long, value_name = "TIME")]
    pub time_limit: Option<String>,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// Show an existing profile instead of running a program: .calls, callgrind's, pprof's, collapsed stacks,
    /// heaptrack's, or what `memray transform csv` writes.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "lines", "time_limit", "ignore_failure"])]
    pub from: Option<PathBuf>,
    /// Write a file. Its extension chooses the format: .svg (a flame graph), .collapsed, .callgrind, .pb.gz (pprof),
    /// .speedscope.json, .firefox.json, .json, or .calls, which `scruple explain` reads. .svg and .collapsed contain
    /// only the count that determines the order.
    #[arg(long = "export", value_name = "FILE")]
    pub export: Vec<Export>,
    /// The program and its arguments.
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "from")]
    pub command: Vec<String>,
}

/// An order of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortCalls {
    /// Instructions of the function itself.
    Own,
    /// Instructions of the function and of all that it called.
    Inclusive,
    /// Calls of the function.
    Calls,
    /// Allocations of the function itself.
    Allocations,
    /// Bytes that it allocated.
    Bytes,
}

/// Find out whether a program leaks: its live heap against the size of its work.
///
/// The command is launched for each size, which replaces {size} (or n in braces). The figure is the largest live heap
/// after full collections, which Scruple makes the language runtime do. Without such a runtime it is the memory of
/// malloc that was not freed at the end, or else the peak of resident memory. If the heap grows in proportion to the
/// work, the program keeps a part of everything that it has handled. Only you know whether it should.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  scruple inspect leak --sizes 1k,2k,4k,8k,16k,32k -- ./server --requests {size}
  scruple inspect leak --check --sizes 10k,20k,40k,80k,160k -- python3 job.py {size}
")]
pub struct LeakArgs {
    /// The sizes of the work: at least four, better six. The largest must be at least four times the smallest.
    #[arg(long, value_name = "N", value_delimiter = ',', required = true)]
    pub sizes: Vec<String>,
    /// Launch the program this many times with each size.
    #[arg(short, long, value_name = "N", default_value_t = 2)]
    pub runs: u32,
    /// Use this figure: heap.live, malloc.live, memory.peak (default: the first of them that is available),
    /// malloc.peak or heap.live_max.
    #[arg(long, value_name = "KEY")]
    pub metric: Option<String>,
    /// Ignore growth of less than this for each unit of work.
    #[arg(long, value_name = "BYTES", default_value = SMALLEST)]
    pub smallest: String,
    /// Exit with code 1 if the heap grows in proportion to the work, and with 3 if the readings cannot tell.
    #[arg(long)]
    pub check: bool,
    /// Spend at most about this long. Larger sizes and repetitions that do not fit are left out.
    #[arg(long, value_name = "TIME", default_value = "2min")]
    pub budget: String,
    /// End a launch that takes longer.
    #[arg(long, value_name = "TIME")]
    pub time_limit: Option<String>,
    /// Whether to launch two of the sizes once more if malloc.live grows, and show which code keeps the memory. With
    /// ‘auto’, these launches take at most about a minute. Without valgrind, or if it would take longer, every
    /// allocation is recorded instead.
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = LeakSitesWhen::Auto)]
    pub sites: LeakSitesWhen,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// Play readings from a file instead of measuring (for tests).
    #[arg(long, hide = true, value_name = "FILE")]
    pub scripted: Option<PathBuf>,
    /// The program and its arguments, one of which contains {size}.
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<String>,
    /// Where the readings are kept, for a page.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// When a search for leaks looks for allocation sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LeakSitesWhen {
    /// If the figure grows and the launches take at most about a minute.
    Auto,
    /// Even if the figure does not grow or the launches take longer.
    Always,
    /// Never.
    Never,
}

/// Analyse Haskell programs: collector pauses, heap profiles, cost centres.
#[derive(Args, Debug)]
pub struct GhcArgs {
    /// What to look at.
    #[command(subcommand)]
    pub part: GhcPart,
}

/// The reports on a Haskell program.
#[derive(Debug, Subcommand)]
pub enum GhcPart {
    /// Run a program and show how long its garbage collections stopped it.
    Pauses(PausesArgs),
    /// Show a heap profile (.hp, from +RTS -hT, -hc and the like): what was live, and when.
    Heap(HeapArgs),
    /// Show a cost-centre profile (.prof, from +RTS -p, -P or -pj): which cost centres took time and memory.
    Profile(ProfileArgs),
}

/// Run a program and show how long its garbage collections stopped it.
///
/// The runtime logs every collection (-S), which every default build allows; the program and its output stay unchanged.
/// The log counts in thousandths of a second.
#[derive(Args, Debug)]
pub struct PausesArgs {
    /// Read an existing log, written by +RTS -S, instead of running a program.
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub from: Option<PathBuf>,
    /// Do not fail when the program does; its pauses are shown in any case.
    #[arg(short, long)]
    pub ignore_failure: bool,
    /// End the program when it takes longer.
    #[arg(long, value_name = "TIME")]
    pub time_limit: Option<String>,
    /// Print JSON instead of tables.
    #[arg(long)]
    pub json: bool,
    /// The program and its arguments.
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "from")]
    pub command: Vec<String>,
}

/// Show a heap profile: what was live, and when.
#[derive(Args, Debug)]
pub struct HeapArgs {
    /// The profile.
    pub file: PathBuf,
    /// At most this many bands of the profile.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 12)]
    pub most: usize,
    /// Write a file: .svg (an area chart).
    #[arg(long = "export", value_name = "FILE")]
    pub export: Vec<Export>,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// Show a cost-centre profile: which cost centres took time and memory.
#[derive(Args, Debug)]
pub struct ProfileArgs {
    /// The profile.
    pub file: PathBuf,
    /// Which cost centres come first, and what is drawn.
    #[arg(long, value_enum, default_value_t = CostCentreCost::Time, value_name = "WHAT")]
    pub sort: CostCentreCost,
    /// At most this many cost centres.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub most: usize,
    /// Write a file: .svg (a flame graph).
    #[arg(long = "export", value_name = "FILE")]
    pub export: Vec<Export>,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// What a cost centre costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CostCentreCost {
    /// Ticks of the profiler's clock.
    Time,
    /// Bytes allocated.
    Bytes,
}
