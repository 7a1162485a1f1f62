//! Converts the command line into servers and a plan.

use crate::cli::values;
use crate::fault::Fault;
use crate::load::args::LoadArgs;
use crate::secrets::without_parameters;
use scruple_core::harmless_text::plain;
use scruple_core::subject::{Arm, Role, Subject};
use scruple_core::unit::{Unit, parse_quantity};
use scruple_measure::load::cost::start::ServerCommand;
use scruple_measure::load::{
    AnswerCheck, Arrivals, GeneratorThreads, Model, Nginx, NginxError, Pace, Plan, PlannedRow, Protocol,
    Request, RequestFileContent, RequestOrder, Scenario, Target, Trust, WarmUp, access_log, har,
    is_access_log, request_file, scenario,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

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

/// Returns the plan of the whole load. Each server has its own requests.
///
/// # Errors
/// The options contradict each other or are invalid.
pub fn plan(args: &LoadArgs, side: &TargetServer, seed: u64) -> Result<Plan, Fault> {
    let amount = &args.amount;
    let users = ScenarioSettings::of(args, side)?;
    args.refuse_budget_without_search()?;
    let pace = match (&amount.rate, args.slo()) {
        _ if users.pace.is_some() => users.pace.unwrap_or(Pace::Closed),
        (Some(text), None) => {
            let (rates, arrivals) = rates(text)?;
            if rates.1.is_some() {
                return Err(Fault::usage(format!(
                    "‘{text}’ is a range, which only a search has: give one rate, or limits with --slo"
                )));
            }
            Pace::Open { rate: rates.0, arrivals }
        }
        (Some(_), Some(_)) | (None, _) => Pace::Closed,
    };
    if args.windows(1) == 0 {
        return Err(Fault::usage("zero windows have no requests: give --windows at least 1"));
    }
    let (connections, grow_to) = match &amount.connections {
        Some(text) => connections(text)?,
        None => (users.most.unwrap_or(CONNECTIONS), 0),
    };
    if grow_to > 0 && pace == Pace::Closed && args.slo().is_none() {
        return Err(Fault::usage("connections are added only when a request is due: give a --rate as well"));
    }
    let (threads, cores) = threads(&amount.threads)?;
    let plan = Plan {
        requests: side.requests.clone(),
        order: side.order,
        scenario: side.scenario.clone(),
        pace,
        connections,
        grow_to,
        streams: args.connection.http2.unwrap_or(1),
        keep_alive: !args.connection.no_keep_alive,
        threads: GeneratorThreads { cores, priority: amount.priority, ..GeneratorThreads::of(threads) },
        duration: match users.duration {
            Some(duration) => duration,
            None => values::duration(args.duration())?,
        },
        max_requests: amount.requests,
        timeout: values::duration(&args.connection.timeout)?,
        warm_up: match amount.warm_up.as_str() {
            // A rise or fall of the load that the scenario describes is not a warm-up.
            "auto" if users.duration.is_some() => WarmUp::Off,
            "auto" => WarmUp::Auto,
            "off" => WarmUp::Off,
            time => WarmUp::For(values::duration(time)?),
        },
        seed,
        ..Plan::of(Request::get("/"))
    };
    plan.validate().map_err(Fault::usage)?;
    Ok(plan)
}

/// The default number of connections.
const CONNECTIONS: u32 = 10;

/// The largest number of kinds of requests with separate figures.
const NAMED: usize = 64;

/// The settings that the scenario determines, so that the command line must not set them.
#[derive(Default)]
struct ScenarioSettings {
    pace: Option<Pace>,
    duration: Option<Duration>,
    /// The largest number of concurrent users, each of whom has a connection.
    most: Option<u32>,
}

impl ScenarioSettings {
    fn of(args: &LoadArgs, side: &TargetServer) -> Result<ScenarioSettings, Fault> {
        let Some(scenario) = &side.scenario else { return Ok(ScenarioSettings::default()) };
        let amount = &args.amount;
        let refused = |what: &str, why: &str| Err(Fault::usage(format!("the scenario has {what}: {why}")));
        let closed = scenario.model == Some(Model::Closed);
        if let (recorded @ 1.., Some(duration)) = (scenario.recorded(), scenario.duration()) {
            if args.slo().is_some() {
                return refused("times of its own", "a search cannot use them; leave --slo out");
            }
            let rate = recorded as f64 / duration.as_secs_f64();
            let pace = Pace::Open { rate, arrivals: Arrivals::Constant };
            return Ok(ScenarioSettings { pace: Some(pace), duration: Some(duration), most: None });
        }
        if args.slo().is_some() && (closed || scenario.duration().is_some()) {
            return refused(
                "stages or users of its own",
                "a search for the highest rate needs an open model without stages; leave --slo or the stages out",
            );
        }
        let Some(duration) = scenario.duration() else {
            return match (scenario.model, &amount.rate, args.slo()) {
                (Some(Model::Open), None, None) => refused(
                    "an open model without stages",
                    "give --rate sessions per second, or add a [[stage]]",
                ),
                (Some(Model::Closed), Some(_), _) => refused(
                    "a closed model",
                    "--connections gives the number of its users; leave --rate out, or write model = \"open\"",
                ),
                _ => Ok(ScenarioSettings::default()),
            };
        };
        if amount.rate.is_some() || amount.duration.is_some() {
            return refused(
                "stages",
                "they say how much is sent and how long; leave --rate and --duration out",
            );
        }
        if !matches!(amount.warm_up.as_str(), "auto" | "off") {
            return refused("stages", "let the first of them be the warm-up, and leave --warmup out");
        }
        // The rate is the mean over the stages, because it changes with them.
        let sessions: f64 =
            scenario.stages.iter().map(|s| (s.from + s.to) / 2.0 * s.duration.as_secs_f64()).sum();
        if sessions <= 0.0 {
            return refused("stages", "all of them are at 0; give one of them a rate or users");
        }
        let open = Pace::Open { rate: sessions / duration.as_secs_f64(), arrivals: Arrivals::Constant };
        Ok(ScenarioSettings {
            pace: Some(if closed { Pace::Closed } else { open }),
            duration: Some(duration),
            most: closed.then(|| scenario.most_users()),
        })
    }
}

/// Parses `2000`, `100..1M`, or either after `poisson:`. Returns the first rate, the last one if there is one, and the
/// distribution of the gaps.
///
/// # Errors
/// The text has none of these forms.
pub fn rates(text: &str) -> Result<((f64, Option<f64>), Arrivals), Fault> {
    let (arrivals, rates) = match text.strip_prefix("poisson:") {
        Some(rates) => (Arrivals::Poisson, rates),
        None => (Arrivals::Constant, text),
    };
    let rates = match rates.split_once("..") {
        None => (rate(rates)?, None),
        Some((from, to)) => (rate(from)?, Some(rate(to)?)),
    };
    match rates {
        (from, Some(to)) if to < from => Err(Fault::usage(format!(
            "in ‘{text}’ the first rate is the higher one: write the lower one first"
        ))),
        rates => Ok((rates, arrivals)),
    }
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

/// Parses a rate such as `2000`, `2k` or `2000/s`.
fn rate(text: &str) -> Result<f64, Fault> {
    let plain = text.trim().strip_suffix("/s").unwrap_or(text);
    match parse_quantity(plain, &Unit::Count) {
        Ok(rate) if rate > 0.0 => Ok(rate),
        _ => {
            Err(Fault::usage(format!("‘{text}’ is not a rate: give requests per second, such as 2000 or 2k")))
        }
    }
}

/// Parses `10`, or `10..40` for the number of connections that are opened and the largest number.
fn connections(text: &str) -> Result<(u32, u32), Fault> {
    let wrong = || {
        Fault::usage(format!("‘{text}’ is not a number of connections: give a number such as 10, or 10..40"))
    };
    let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
    match text.split_once("..") {
        None => Ok((number(text)?, 0)),
        Some((few, many)) => match (number(few)?, number(many)?) {
            (few, many) if many >= few => Ok((few, many)),
            _ => Err(wrong()),
        },
    }
}

/// Parses `2`, or `2@0,1` for threads on these cores.
fn threads(text: &str) -> Result<(u32, Vec<usize>), Fault> {
    let wrong = || {
        Fault::usage(format!(
            "‘{text}’ is not a number of threads: give a number such as 2, or 2@0,1 for cores"
        ))
    };
    let (count, cores) = text.split_once('@').unwrap_or((text, ""));
    let cores =
        cores.split(',').filter(|core| !core.is_empty()).map(|core| core.parse().map_err(|_| wrong()));
    Ok((count.parse().map_err(|_| wrong())?, cores.collect::<Result<_, _>>()?))
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

    #[test]
    fn rates_are_read_with_and_without_their_unit() {
        assert_eq!(rate("2k").ok(), Some(2000.0));
        assert_eq!(rate("500/s").ok(), Some(500.0));
        assert!(rate("0").is_err() && rate("fast").is_err());
        assert_eq!(rates("poisson:10..1k").ok(), Some(((10.0, Some(1000.0)), Arrivals::Poisson)));
        assert!(rates("10..5").is_err() && rates("..5").is_err() && rates("poisson:").is_err());
    }

    #[test]
    fn connections_and_threads_are_read_with_what_is_behind_them() {
        assert_eq!((connections("10").ok(), connections("1..5").ok()), (Some((10, 0)), Some((1, 5))));
        assert!(connections("5..1").is_err() && connections("-1").is_err() && connections("..").is_err());
        assert_eq!((threads("2").ok(), threads("2@0,3").ok()), (Some((2, vec![])), Some((2, vec![0, 3]))));
        assert!(threads("@1").is_err() && threads("1@a").is_err());
    }
}
