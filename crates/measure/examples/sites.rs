//! Runs a command and prints where each of its processes allocated, as tab-separated lines: the contexts with the most
//! bytes first.
//!
//!     sites [--mean=BYTES] [--seed=N] [--rows=N] COMMAND [ARGUMENT…]
//!     sites [--mean=BYTES] [--seed=N] --hold
//!
//! With `--hold` it prints the environment with which any command is recorded, until its input ends.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

use std::error::Error;
use std::process::{Command, ExitCode};

use scruple_code::allocation_sites::HeapSites;
use scruple_measure::heap::{HeapSession, SiteSampling};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1).peekable();
    let mut sampling = SiteSampling::USUAL;
    let mut rows = 20;
    let mut hold = false;
    while let Some(word) = words.next_if(|word| word.to_string_lossy().starts_with("--")) {
        match word.to_string_lossy().split_once('=') {
            Some(("--mean", value)) => sampling.mean = value.parse()?,
            Some(("--seed", value)) => sampling.seed = value.parse()?,
            Some(("--rows", value)) => rows = value.parse()?,
            _ => hold = true,
        }
    }
    let session = HeapSession::start_with_sites(&std::env::temp_dir(), sampling)?;
    let environment = session.environment(std::env::var_os("LD_PRELOAD").as_deref());
    if hold {
        for (name, value) in environment {
            println!("{}={}", name.display(), value.display());
        }
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
        return Ok(ExitCode::SUCCESS);
    }
    let program =
        words.next().ok_or("usage: sites [--mean=BYTES] [--seed=N] [--rows=N] COMMAND [ARGUMENT…]")?;
    let status = Command::new(program).args(words).envs(environment).status()?;
    for sites in session.read_sites(&session.read()?)? {
        print(&sites, rows);
    }
    Ok(ExitCode::from(u8::from(!status.success())))
}

fn print(sites: &HeapSites, rows: usize) {
    eprintln!("process {} {}: {:?}", sites.process, sites.words.join(" "), sites.counting);
    eprintln!("{:?}\nestimated {:?}", sites.total, sites.sum());
    sites.unseen.iter().for_each(|phrase| eprintln!("missing: {phrase}"));
    let mut order: Vec<usize> = (0..sites.contexts.len()).collect();
    order.sort_by_key(|context| std::cmp::Reverse(sites.contexts[*context].own.allocated.bytes));
    for context in order.into_iter().take(rows) {
        let own = sites.contexts[context].own;
        let share = sites.share(|one| one.allocated, |one| one == context, 0.95);
        let share = share.map(|share| format!("{:.1}–{:.1} %", share.low * 100.0, share.high * 100.0));
        let path = sites.path(context).into_iter().rev();
        let names = path.map(|context| sites.frames[sites.contexts[context].frame].name.as_str());
        let names: Vec<&str> = names.collect();
        eprintln!(
            "{}\t{}\t{}\t{}\t{}\t{}",
            own.allocated.blocks,
            own.allocated.bytes,
            own.at_peak.bytes,
            own.at_end.bytes,
            share.unwrap_or_default(),
            names.join(" < ")
        );
    }
}
