//! Runs a command under the allocation counter and prints what each process counted, as tab-separated lines.
//!
//!     heap [--peak=off|usable|requested] COMMAND [ARGUMENT…]
//!     heap [--peak=off|usable|requested] --hold
//!
//! With `--hold` it prints the environment with which any command is counted, and prints the counts when its input
//! ends.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

use std::error::Error;
use std::process::{Command, ExitCode};

use scruple_measure::heap::{AllocationCounts, HeapSession, LiveBytes, Totals};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut words = std::env::args_os().skip(1).peekable();
    let option = words.next_if(|word| word.to_string_lossy().starts_with("--peak="));
    let peak = match option.as_deref().and_then(|word| word.to_str()) {
        Some("--peak=off") => LiveBytes::Off,
        Some("--peak=requested") => LiveBytes::Requested,
        _ => LiveBytes::Usable,
    };
    let program = words.next().ok_or("usage: heap [--peak=off|usable|requested] COMMAND [ARGUMENT…]")?;
    let session = HeapSession::start(&std::env::temp_dir(), peak)?;
    let environment = session.environment(std::env::var_os("LD_PRELOAD").as_deref());
    if program == "--hold" {
        for (name, value) in environment {
            println!("{}={}", name.display(), value.display());
        }
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
        print(&session.read()?);
        return Ok(ExitCode::SUCCESS);
    }
    let status = Command::new(program).args(words).envs(environment).status()?;
    print(&session.read()?);
    Ok(ExitCode::from(u8::from(!status.success())))
}

fn print(totals: &Totals) {
    eprintln!("process\tallocations\tbytes\tfrees\tlive\tpeak\tpeak error\tthreads");
    for process in &totals.processes {
        let own = if process.foreign_malloc { " (malloc of its own)" } else { "" };
        line(&format!("{} {}{own}", process.pid, process.exe), &process.counts, process.threads.into());
    }
    line("all", &totals.counts(), totals.threads());
    for unseen in &totals.unseen {
        eprintln!("unseen: {} {}", unseen.pid, unseen.path);
    }
}

fn line(who: &str, counts: &AllocationCounts, threads: u64) {
    let live = counts.live.unwrap_or_default();
    eprintln!(
        "{who}\t{}\t{}\t{}\t{}\t{}\t{}\t{threads}",
        counts.allocations, counts.bytes, counts.frees, live.bytes, live.peak, live.peak_error
    );
}
