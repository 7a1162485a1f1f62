//! Converts the command line into the servers to load, with their requests and the commands that start them.

use crate::fault::Fault;
use crate::load::args::LoadArgs;
use crate::secrets::without_parameters;
use scruple_core::harmless_text::plain;
use scruple_core::subject::{Arm, Role, Subject};
use scruple_measure::load::cost::server_process::ServerCommand;
use scruple_measure::load::{
    AnswerCheck, Nginx, NginxError, Plan, PlannedRow, Protocol, Request, RequestFileContent, RequestOrder,
    Scenario, Target, Trust, access_log, har, is_access_log, request_file, scenario,
};
use std::path::Path;
use std::sync::Arc;

/// The largest number of kinds of requests with separate figures.
const NAMED: usize = 64;

/// A server to load.
#[derive(Clone, Debug)]
pub struct TargetServer {
    /// The name of the server's arm.
    pub name: String,
    /// The URL of the server as the user gave it.
    pub url: String,
    /// The address of the server.
    pub target: Target,
    /// The requests to the server.
    pub requests: Vec<Request>,
    /// The order of the requests.
    pub order: RequestOrder,
    /// The scenario of users; `None` if single requests are sent.
    pub scenario: Option<Arc<Scenario>>,
    /// The limits of the scenario, each with the name of its request, group or session, or `*`.
    pub limits: Vec<(String, String)>,
    /// The remarks on how the requests were read.
    pub notes: Vec<String>,
    /// The command that starts the server, if Scruple starts it.
    pub command: Option<ServerCommand>,
    /// The yardstick program, if the server is a yardstick for the others.
    pub yardstick: Option<Nginx>,
}

impl TargetServer {
    /// Creates the arm of the server under a plan.
    pub fn arm(&self, plan: &Plan) -> Arm {
        let words = self.command.iter().flat_map(|command| &command.argv);
        let subject = Subject::Request {
            url: self.url.clone(),
            server: words.map(|word| word.to_string_lossy().into_owned()).collect(),
            rate: plan.rate(),
            connections: plan.connections,
        };
        let role = if self.yardstick.is_some() { Role::Yardstick } else { Role::Subject };
        Arm::new(self.name.clone(), subject, role)
    }

    /// Creates the arms of the server's kinds of requests, groups and sessions. `several` says whether there are
    /// several servers, which have the same kinds.
    pub fn parts(&self, plan: &Plan, several: bool) -> Vec<Arm> {
        let rows = plan.rows();
        if self.yardstick.is_some() || rows.len() < 2 || rows.len() > NAMED {
            return Vec::new();
        }
        let subject = self.arm(plan).subject;
        let arm = |row: &PlannedRow| {
            Arm::new(part_name(&self.name, &row.name, several), subject.clone(), Role::Part)
        };
        rows.iter().map(arm).collect()
    }
}

/// Returns the name of the arm of a kind of request.
pub fn part_name(server: &str, row: &str, several: bool) -> String {
    if several { format!("{server}: {row}") } else { row.to_owned() }
}

/// Returns the servers, the reference first.
///
/// # Errors
/// An address, a command or a file of requests is not usable.
pub fn sides(args: &LoadArgs) -> Result<Vec<TargetServer>, Fault> {
    let mut sides = Vec::new();
    for (index, against) in args.judging.against.iter().enumerate() {
        let (place, command) = match against.split_once(" -- ") {
            Some((place, command)) => (place.trim(), command),
            None => (against.trim(), ""),
        };
        let words = shell_words::split(command)
            .map_err(|_| Fault::usage(format!("‘{against}’ has a quote that does not end: close it")))?;
        let (name, url) = named(place, index);
        sides.push(side(args, name, url, words)?);
    }
    let name = match (&args.judging.name, sides.is_empty()) {
        (Some(name), _) => name.clone(),
        (None, true) => args.url.clone(),
        (None, false) => "new".to_owned(),
    };
    sides.push(side(args, name, &args.url, args.server.clone())?);
    for (index, side) in sides.iter().enumerate() {
        if sides[..index].iter().any(|other| other.name == side.name) {
            return Err(Fault::usage(format!(
                "two servers are called ‘{}’: give them different names, as in --against old=URL --name new",
                side.name
            )));
        }
    }
    refuse_shared_addresses(&sides)?;
    Ok(sides)
}

/// Refuses commands that start two servers at one address: both run while they are loaded in turn.
fn refuse_shared_addresses(sides: &[TargetServer]) -> Result<(), Fault> {
    let started: Vec<&TargetServer> = sides.iter().filter(|side| side.command.is_some()).collect();
    for (index, side) in started.iter().enumerate() {
        for other in &started[..index] {
            let addresses = &other.target.addresses;
            if let Some(shared) = side.target.addresses.iter().find(|address| addresses.contains(address)) {
                return Err(Fault::usage(format!(
                    "the commands of ‘{}’ and ‘{}’ both start a server at {shared}: give each an address of its own, such \
                     as another port",
                    other.name, side.name
                )));
            }
        }
    }
    Ok(())
}

/// Adds the requested yardstick after the servers. Its files are put into the folder.
///
/// # Errors
/// The yardstick is not installed, or does not support the protocol of the others.
pub fn add_yardstick(args: &LoadArgs, folder: &Path, sides: &mut Vec<TargetServer>) -> Result<(), Fault> {
    let Some(name) = &args.judging.yardstick else { return Ok(()) };
    let subject = &sides[sides.len() - 1];
    if subject.target.tls.is_some() || subject.target.protocol != Protocol::Http1 {
        return Err(Fault::usage(
            "the yardstick speaks HTTP/1.1 without TLS: load the server so, or leave --yardstick out",
        ));
    }
    if sides.iter().any(|side| side.name == *name) {
        return Err(Fault::usage(format!(
            "a server is called ‘{name}’, as the yardstick is: give it another name"
        )));
    }
    let nginx = Nginx::configure_beside(&subject.target, folder).map_err(|error| match error {
        NginxError::Missing => Fault::usage(format!("{error}; install it, or leave --yardstick out")),
        error => Fault::usage(error.to_string()),
    })?;
    sides.push(TargetServer {
        name: name.clone(),
        url: nginx.target.addresses.first().map(ToString::to_string).unwrap_or_default(),
        target: nginx.target.clone(),
        requests: vec![Nginx::request()],
        order: RequestOrder::Weighted,
        scenario: None,
        limits: Vec::new(),
        notes: Vec::new(),
        command: Some(nginx.command.clone()),
        yardstick: Some(nginx),
    });
    Ok(())
}

/// Parses `NAME=URL`. A URL without a name is called ‘old’, ‘old2’, and so on.
fn named(text: &str, index: usize) -> (String, &str) {
    match text.split_once('=') {
        Some((name, url)) if !name.is_empty() && !name.contains(['/', ' ', ':', '?']) => {
            (name.to_owned(), url)
        }
        _ if index == 0 => ("old".to_owned(), text),
        _ => (format!("old{}", index + 1), text),
    }
}

fn side(args: &LoadArgs, name: String, url: &str, words: Vec<String>) -> Result<TargetServer, Fault> {
    let (mut target, path) = Target::parse(url).map_err(Fault::usage)?;
    if target.tls.is_some() {
        target.tls = Some(match &args.connection.trust {
            Some(anyone) if anyone == Path::new("anyone") => Trust::Anyone,
            Some(file) => Trust::File(file.clone()),
            None => Trust::System,
        });
    }
    if args.connection.http2.is_some() {
        target.protocol = Protocol::Http2;
    }
    let command = (!words.is_empty()).then(|| ServerCommand::of(words.into_iter().map(Into::into).collect()));
    let mut read = match &args.request.scenario {
        Some(file) => from_file(file)?,
        None => single(vec![request(args, &path)?]),
    };
    let recorded = read.scenario.as_ref().is_some_and(|scenario| scenario.recorded() > 0);
    if let Some(speed) = speed(args.amount.rate.as_deref(), recorded)? {
        read.scenario = read.scenario.map(|scenario| scenario.faster(speed));
    }
    Ok(TargetServer {
        name: plain(&without_parameters(&name)),
        url: without_parameters(url),
        target,
        requests: read.requests,
        order: read.order,
        scenario: read.scenario.map(Arc::new),
        limits: read.limits,
        notes: read.notes,
        command,
        yardstick: None,
    })
}

/// Parses the speed at which recorded requests are sent, such as `2x`. Returns `None` if the text is a rate.
fn speed(text: Option<&str>, recorded: bool) -> Result<Option<f64>, Fault> {
    let Some(text) = text else { return Ok(None) };
    let factor = text.strip_suffix(['x', '×']);
    let speed = factor.and_then(|factor| factor.parse::<f64>().ok()).filter(|speed| *speed > 0.0);
    match (speed, recorded) {
        (Some(speed), true) if speed.is_finite() => Ok(Some(speed)),
        (None, false) if factor.is_none() => Ok(None),
        (_, true) => Err(Fault::usage(format!(
            "recorded requests have times of their own: write --rate 2x for twice as fast, and not ‘{text}’"
        ))),
        (_, false) => Err(Fault::usage(format!(
            "‘{text}’ is a speed, which only recorded requests have (--scenario FILE.har, or an access log): give a rate"
        ))),
    }
}

/// Returns requests that are sent without a scenario.
fn single(requests: Vec<Request>) -> RequestFileContent {
    RequestFileContent {
        requests,
        order: RequestOrder::Weighted,
        scenario: None,
        limits: Vec::new(),
        notes: Vec::new(),
    }
}

/// Reads the requests of a file: a scenario, a recording, or a line for each request.
fn from_file(file: &Path) -> Result<RequestFileContent, Fault> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Fault::usage(format!("cannot read ‘{}’: {error}", file.display())))?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let read = match file.extension().and_then(|ending| ending.to_str()) {
        Some("toml") => scenario(&text, folder),
        Some("har") => har(&text),
        _ if is_access_log(&text) => access_log(&text),
        _ => request_file(&text, folder).map(single),
    };
    read.map_err(|why| Fault::usage(format!("the scenario ‘{}’ cannot be sent: {why}", file.display())))
}

/// Creates the request that the options describe.
fn request(args: &LoadArgs, path: &str) -> Result<Request, Fault> {
    /// The prefix of a text that answers must contain.
    const TEXT: &str = "text:";
    let own = &args.request;
    let body = match own.body.as_deref().map(|body| (body, body.strip_prefix('@'))) {
        None => Vec::new(),
        Some((_, Some(file))) => std::fs::read(file)
            .map_err(|error| Fault::usage(format!("cannot read the body ‘{file}’: {error}")))?,
        Some((text, None)) => text.as_bytes().to_vec(),
    };
    let method =
        own.method.clone().unwrap_or_else(|| if own.body.is_some() { "POST" } else { "GET" }.to_owned());
    let headers = own
        .header
        .iter()
        .map(|line| {
            let pair =
                line.split_once(':').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
            pair.ok_or_else(|| {
                Fault::usage(format!("‘{line}’ is not a header: write for instance ‘Accept: */*’"))
            })
        })
        .collect::<Result<_, _>>()?;
    let (texts, statuses): (Vec<&String>, Vec<&String>) =
        own.expect.iter().partition(|what| what.starts_with(TEXT));
    if texts.len() > 1 {
        return Err(Fault::usage("answers can be checked for one text only: give --expect text:TEXT once"));
    }
    let status = statuses.iter().flat_map(|what| what.split(',')).map(|one| one.trim().to_owned()).collect();
    let contains = texts.first().and_then(|what| what.strip_prefix(TEXT)).map(str::to_owned);
    Ok(Request {
        name: format!("{method} {}", without_parameters(path)),
        method,
        headers,
        body,
        check: AnswerCheck { status, contains, ..AnswerCheck::default() },
        ..Request::get(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_by_what_stands_before_the_address() {
        assert_eq!(named("old=:8080", 3), ("old".to_owned(), ":8080"));
        assert_eq!(named("http://h/?a=b", 0), ("old".to_owned(), "http://h/?a=b"));
        assert_eq!(named(":8080/?a=b", 1), ("old2".to_owned(), ":8080/?a=b"));
    }
}
