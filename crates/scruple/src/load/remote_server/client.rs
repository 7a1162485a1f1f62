//! The end of the process that loads.

use super::{RemoteRequest, ServerReply};
use crate::farm::same_version::{INSTALL, VERSION, Writer};
use crate::fault::{Code, Fault};
use crate::load::windows::ServerAccounts;
use scruple_core::harmless_text::shortened;
use scruple_core::provenance::Provenance;
use scruple_measure::load::cost::sheet::Sheet;
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

/// The number of characters of a line that an error message shows.
const SHOWN: usize = 60;

/// How the process on the node of the servers is started, and how its node is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteHelper {
    /// The words that start it.
    pub words: Vec<String>,
    /// The host name or address of its node.
    pub address: String,
}

/// The process on the node of the servers. Dropping the value ends it, and the servers with it.
pub struct RemoteServer {
    child: Child,
    /// `None` once the stream is closed, which ends the process.
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    address: String,
    /// Why the first unanswered question has no answer.
    unanswered: Option<Fault>,
    /// The name of the node.
    pub node: String,
    /// The provenance of the node.
    pub machine: Provenance,
}

impl RemoteServer {
    /// Starts the process on the node of the servers.
    pub fn start(beside: &RemoteHelper) -> Result<RemoteServer, Fault> {
        let failed =
            |error| Fault::usage(format!("cannot start a process on the node of the servers: {error}"));
        let (program, arguments) = beside.words.split_first().ok_or_else(|| Fault::internal("no words"))?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Fault::internal("a process without streams"));
        };
        let machine = Provenance::default();
        let (from, address) = (BufReader::new(from), beside.address.clone());
        let mut link = RemoteServer {
            child,
            to: Some(to),
            from,
            address,
            unanswered: None,
            node: String::new(),
            machine,
        };
        let place = format!("the node of the servers, ‘{}’,", beside.address);
        let greeting = link.line()?;
        // Anything but a greeting comes from a version without greetings, or from another program.
        let writer: Writer = serde_json::from_str(&greeting).map_err(|_| {
            Fault::usage(format!(
                "{place} says ‘{}’ and not which version of Scruple it has: install version {VERSION} on all machines, and type the command again",
                shortened(greeting.trim(), SHOWN)
            ))
        })?;
        writer.check(&place, "this machine", INSTALL)?;
        match link.read()? {
            ServerReply::Ready(node, machine) => (link.node, link.machine) = (node, *machine),
            other => return Err(link.unexpected(&other)),
        }
        Ok(link)
    }

    /// Starts a server there. Returns whether its processes are known.
    ///
    /// # Errors
    /// The server does not start, or cannot be reached from here.
    pub fn start_server(&mut self, side: usize) -> Result<bool, Fault> {
        match self.ask(&RemoteRequest::Start(side, self.address.clone()), &|| 0)? {
            ServerReply::Started(known) => Ok(known),
            other => Err(self.unexpected(&other)),
        }
    }

    /// Returns the host name or address of the node.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns how a server ended, if it did.
    pub fn status(&mut self, side: usize) -> Option<String> {
        match self.ask(&RemoteRequest::Status(side), &|| 0) {
            Ok(ServerReply::Status(status)) => status,
            _ => None,
        }
    }

    /// Checks that the process there has answered everything so far.
    ///
    /// # Errors
    /// It has ended, or its answer is not in the words of this version, so that accounts are lost.
    pub fn check(&self) -> Result<(), Fault> {
        self.unanswered.clone().map_or(Ok(()), Err)
    }

    fn ask(&mut self, ask: &RemoteRequest, handled: &dyn Fn() -> u64) -> Result<ServerReply, Fault> {
        let answer = self.answer(ask, handled);
        if let (None, Err(fault)) = (&self.unanswered, &answer) {
            self.unanswered = Some(fault.clone());
        }
        answer
    }

    fn answer(&mut self, ask: &RemoteRequest, handled: &dyn Fn() -> u64) -> Result<ServerReply, Fault> {
        self.say(ask)?;
        loop {
            match self.read()? {
                ServerReply::HowMany => self.say(&RemoteRequest::Handled(handled()))?,
                answer => return Ok(answer),
            }
        }
    }

    fn say(&mut self, ask: &RemoteRequest) -> Result<(), Fault> {
        let line = serde_json::to_string(ask).map_err(Fault::internal)?;
        let Some(to) = &mut self.to else { return Err(gone(&self.node)) };
        let written = writeln!(to, "{line}").and_then(|()| to.flush());
        written.map_err(|_| gone(&self.node))
    }

    fn read(&mut self) -> Result<ServerReply, Fault> {
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|error| {
            Fault::usage(format!(
                "the node of the servers, ‘{}’, says ‘{}’ ({error}), which another build of Scruple {VERSION} means: install the same build on all machines",
                self.address,
                shortened(line.trim(), SHOWN)
            ))
        })
    }

    fn line(&mut self) -> Result<String, Fault> {
        let mut line = String::new();
        match self.from.read_line(&mut line) {
            Ok(0) | Err(_) => Err(gone(&self.node)),
            Ok(_) => Ok(line),
        }
    }

    fn unexpected(&self, answer: &ServerReply) -> Fault {
        match answer {
            ServerReply::Failed(why) => Fault::program(why),
            other => Fault::internal(format!("the node of the servers says {other:?}")),
        }
    }
}

/// Such an end is not an error of the unit, which may run again.
fn gone(node: &str) -> Fault {
    Fault {
        code: Code::Interrupted,
        message: format!("the process that starts the servers on the node ‘{node}’ has ended"),
    }
}

impl Drop for RemoteServer {
    fn drop(&mut self) {
        drop(self.to.take());
        // It ends by itself when its input ends; its exit code has no meaning.
        let _ = self.child.wait();
    }
}

/// The accounts of a server on the other node. Accounts are lost if the process there has ended.
pub struct RemoteAccounts {
    link: Rc<RefCell<RemoteServer>>,
    side: usize,
}

impl RemoteAccounts {
    /// Creates the accounts of a server that the other process has started.
    pub fn new(link: Rc<RefCell<RemoteServer>>, side: usize) -> RemoteAccounts {
        RemoteAccounts { link, side }
    }

    fn ask(&self, ask: RemoteRequest, handled: &dyn Fn() -> u64) -> Result<ServerReply, String> {
        match self.link.borrow_mut().ask(&ask, handled) {
            Ok(ServerReply::Failed(why)) => Err(why),
            Ok(answer) => Ok(answer),
            Err(fault) => Err(fault.message),
        }
    }
}

impl ServerAccounts for RemoteAccounts {
    fn begin(&mut self, handled: &dyn Fn() -> u64) -> Result<(), String> {
        self.ask(RemoteRequest::Begin(self.side), handled).map(|_| ())
    }

    fn mark(&mut self, handled: &dyn Fn() -> u64) -> Result<(), String> {
        self.ask(RemoteRequest::Mark(self.side), handled).map(|_| ())
    }

    fn end(&mut self, handled: &dyn Fn() -> u64) {
        // A window that did not end is left out.
        let _ = self.ask(RemoteRequest::End(self.side), handled);
    }

    fn windows(&mut self) -> usize {
        match self.ask(RemoteRequest::Windows(self.side), &|| 0) {
            Ok(ServerReply::Windows(windows)) => windows,
            _ => 0,
        }
    }

    fn costs_from(&mut self, first: usize) -> Vec<Vec<(String, f64)>> {
        match self.ask(RemoteRequest::Costs(self.side, first), &|| 0) {
            Ok(ServerReply::Costs(costs)) => costs,
            _ => Vec::new(),
        }
    }

    fn sheet(self: Box<Self>) -> Result<Sheet, String> {
        match self.ask(RemoteRequest::SheetInput(self.side), &|| 0)? {
            ServerReply::SheetInput(Some(sheet_input)) => Ok(sheet_input.sheet()),
            ServerReply::SheetInput(None) => {
                Err("the node of the servers has not read its accounts".to_owned())
            }
            other => Err(self.link.borrow().unexpected(&other).message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the error of this version for a process on the node of the servers that begins with this line.
    fn answer_to(line: &str) -> String {
        let words = ["echo", line].map(str::to_owned).to_vec();
        let helper = RemoteHelper { words, address: "n2".to_owned() };
        RemoteServer::start(&helper).err().expect("no server speaks like this").message
    }

    #[test]
    fn accounts_of_a_node_that_is_gone_are_lost_with_a_reason() {
        let greeting = serde_json::to_string(&Writer::this()).expect("plain data");
        let ready = ServerReply::Ready("n2".to_owned(), Box::default());
        let ready = serde_json::to_string(&ready).expect("plain data");
        let words = ["printf", "%s\\n", &greeting, &ready].map(str::to_owned).to_vec();
        let helper = RemoteHelper { words, address: "n2".to_owned() };
        let link = RemoteServer::start(&helper).expect("a greeting, and ready");
        let accounts = RemoteAccounts::new(Rc::new(RefCell::new(link)), 0);
        let why = Box::new(accounts).sheet().expect_err("it has ended");
        assert_eq!(why, "the process that starts the servers on the node ‘n2’ has ended");
    }

    #[test]
    fn a_node_with_another_version_is_refused_before_its_servers_start() {
        let same = format!(
            "and this machine has {VERSION}: install the same version on all machines, and type the command again"
        );
        assert_eq!(
            answer_to(r#"{"scruple":"0.0.9","and":"more"}"#),
            format!("the node of the servers, ‘n2’, has Scruple 0.0.9, {same}")
        );
        // Scruple began like this before it named its version.
        assert_eq!(
            answer_to(r#"{"Ready":["n2",{"machine_class":"x"}]}"#),
            format!("the node of the servers, ‘n2’, has an earlier version of Scruple, {same}")
        );
        let other = answer_to("Welcome to n2!");
        assert!(other.contains("says ‘Welcome to n2!’") && other.contains(VERSION), "{other}");
    }
}
