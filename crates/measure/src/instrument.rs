//! The interface of instruments, which read figures of a launch besides the clock and the kernel's accounts.

use crate::launcher::{Launch, LaunchResult};
use crate::program::Program;
use scruple_core::sample::Reading;
use std::ffi::OsString;

/// Something that is attached to a launch and read afterwards.
///
/// An instrument lives for one launch. It reports beforehand whether it can weigh a program, because an unavailable
/// figure is absent with a reason and never zero.
pub trait Instrument: Send {
    /// The instrument's name, used in `source` and in messages.
    fn name(&self) -> &'static str;

    /// Whether the instrument can weigh this program here; if not, the reason.
    fn available(&self, program: &Program) -> Result<(), String>;

    /// The keys of the metrics that the instrument reads, so that those it cannot read are shown as absent.
    fn metrics(&self) -> &'static [&'static str];

    /// Whether the instrument reads Go programs. This requires tracing, and only trees in which a Go program was seen
    /// are traced.
    fn reads_go(&self) -> bool {
        false
    }

    /// Attaches the instrument to a launch, by changing its environment, descriptors or command line.
    fn decorate(&mut self, launch: &mut Launch) -> Result<(), String>;

    /// Reads the figures after the launch has ended.
    fn read(&mut self, outcome: &LaunchResult) -> Vec<Reading>;
}

/// Sets the option without which a program with the address sanitizer refuses to run if another library is loaded
/// before the sanitizer's. The colon at the end shows the allocation counter which part it may hide from the program.
pub(crate) fn let_sanitizers_be_second(env: &mut Vec<(OsString, OsString)>) {
    let own = env.iter().position(|(name, _)| name == "ASAN_OPTIONS").map(|at| env.remove(at).1);
    let mut value = own.unwrap_or_default();
    if !value.to_string_lossy().contains("verify_asan_link_order") {
        if !value.is_empty() {
            value.push(":");
        }
        value.push("verify_asan_link_order=0:");
    }
    env.push(("ASAN_OPTIONS".into(), value));
}
