//! Does units on this machine, one after another.

use super::node_script::NodeScript;
use super::{ATTEMPTS, Dispatch, WorkOrder, failure};
use crate::fault::Fault;
use std::fs::OpenOptions;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A farm that consists of this machine.
pub struct Here {
    script: NodeScript,
}

impl Here {
    /// Creates a farm that does units with this script.
    pub fn new(script: NodeScript) -> Here {
        Here { script }
    }

    /// Does a unit in a process of its own. When that process is ended, it ends the processes that it started.
    fn do_unit(&self, order: &WorkOrder<'_>, name: &str) -> Result<(), Fault> {
        let log = order.folder.path().join("logs").join(name);
        let failed = |error| Fault::usage(format!("cannot start a unit, see ‘{}’: {error}", log.display()));
        let file = OpenOptions::new().create(true).append(true).open(&log).map_err(failed)?;
        let text = self.script.text(order.environment);
        let unit = order.folder.unit(name);
        let mut child = Command::new("sh");
        child.args(["-c", &format!("node=here unit=$1\nshift\n{text}"), "sh"]).arg(&unit);
        if order.pairs {
            let words = self.script.words_beside(order.environment, "servers");
            child.args(words.map(|word| format!("--beside={word}")));
            child.arg(format!("--beside={}", unit.display())).args(["--reach", "127.0.0.1"]);
        }
        let mut child = child
            .stdin(Stdio::null())
            .stdout(file.try_clone().map_err(failed)?)
            .stderr(file)
            .spawn()
            .map_err(failed)?;
        loop {
            if child.try_wait().map_err(failed)?.is_some() {
                return Ok(());
            }
            if order.interrupted.load(Ordering::Relaxed) {
                // The launchers of the unit end the programs that it has started.
                let _ = child.kill();
                let _ = child.wait();
                return Err(Fault::interrupted());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Dispatch for Here {
    fn places(&mut self) -> Result<usize, Fault> {
        Ok(1)
    }

    fn pairs(&mut self) -> Result<usize, Fault> {
        Ok(1)
    }

    fn run(&mut self, order: &WorkOrder<'_>) -> Result<(), Fault> {
        let all: Vec<&String> = order.stages.iter().flatten().collect();
        for (number, name) in all.iter().enumerate() {
            order.progress.steps("units", number, all.len(), name);
            for attempt in 1.. {
                if order.folder.result(name)?.is_some() {
                    break;
                }
                if attempt > ATTEMPTS {
                    return Err(Fault::usage(format!(
                        "a unit ended {ATTEMPTS} times without a result: see ‘{}’",
                        order.folder.path().join("logs").join(name).display()
                    )));
                }
                self.do_unit(order, name)?;
                failure(order.folder, &[(*name).clone()])?;
            }
        }
        Ok(())
    }
}
