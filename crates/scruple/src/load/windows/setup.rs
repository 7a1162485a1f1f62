//! From the words of a command line to servers and a plan.

use crate::command::arms;
use crate::fault::Fault;
use crate::load::args::LoadArgs;
use scruple_core::subject::{Arm, Role, Subject};
use scruple_core::unit::{Unit, parse_quantity};
use scruple_measure::load::cost::start::ServerCommand;
use scruple_measure::load::{
    Arrivals, Check, Nginx, NginxError, Order, Pace, Plan, Protocol, Request, Target, Trust, WarmUp,
    request_file, scenario,
};
use std::path::Path;

/// A server to be loaded.
#[derive(Clone, Debug)]
pub struct Side {
    /// The arm's name.
    pub name: String,
    /// Its URL as it was given.
    pub url: String,
    /// Its address.
    pub target: Target,
    /// What is sent there.
    pub requests: Vec<Request>,
    /// How it is started, where Scruple does that.
    pub command: Option<ServerCommand>,
    /// The server that is a yardstick for the others.
    pub yardstick: Option<Nginx>,
}

impl Side {
    /// The arm of it under a plan.
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
}

/// The servers, the reference first.
///
/// # Errors
/// When an address, a command or a file of requests is not usable.
pub fn sides(args: &LoadArgs) -> Result<Vec<Side>, Fault> {
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
                "two servers are called ‘{}’: name them apart, as in --against old=URL --name new",
                side.name
            )));
        }
    }
    Ok(sides)
}

/// Adds the yardstick that was asked for behind the servers; its files lie in the folder.
///
/// # Errors
/// When it is not installed, or does not speak what the others do.
pub fn add_yardstick(args: &LoadArgs, folder: &Path, sides: &mut Vec<Side>) -> Result<(), Fault> {
    let Some(name) = &args.judging.yardstick else { return Ok(()) };
    let subject = &sides[sides.len() - 1];
    if subject.target.tls.is_some() || subject.target.protocol != Protocol::Http1 {
        return Err(Fault::usage(
            "the yardstick speaks HTTP/1.1 without TLS: load the server so, or leave --yardstick out",
        ));
    }
    if sides.iter().any(|side| side.name == *name) {
        return Err(Fault::usage(format!(
            "a server is called ‘{name}’, as the yardstick is: name it otherwise"
        )));
    }
    let nginx = Nginx::beside(&subject.target, folder).map_err(|error| match error {
        NginxError::Missing => Fault::usage(format!("{error}; install it, or leave --yardstick out")),
        error => Fault::usage(error.to_string()),
    })?;
    sides.push(Side {
        name: name.clone(),
        url: nginx.target.addresses.first().map(ToString::to_string).unwrap_or_default(),
        target: nginx.target.clone(),
        requests: vec![Nginx::request()],
        command: Some(nginx.command.clone()),
        yardstick: Some(nginx),
    });
    Ok(())
}

/// `NAME=URL`, or a URL alone, which is then called ‘old’, ‘old2’, and so on.
fn named(text: &str, index: usize) -> (String, &str) {
    match text.split_once('=') {
        Some((name, url)) if !name.is_empty() && !name.contains(['/', ' ', ':', '?']) => {
            (name.to_owned(), url)
        }
        _ if index == 0 => ("old".to_owned(), text),
        _ => (format!("old{}", index + 1), text),
    }
}

fn side(args: &LoadArgs, name: String, url: &str, words: Vec<String>) -> Result<Side, Fault> {
    let (mut target, path) = Target::parse(url).map_err(Fault::usage)?;
    if target.tls.is_some() {
        target.tls = Some(match (&args.connection.ca, args.connection.insecure) {
            (Some(file), _) => Trust::File(file.clone()),
            (None, true) => Trust::Anyone,
            (None, false) => Trust::System,
        });
    }
    if args.connection.http2 {
        target.protocol = Protocol::Http2;
    }
    let command = (!words.is_empty()).then(|| ServerCommand::of(words.into_iter().map(Into::into).collect()));
    Ok(Side { name, url: url.to_owned(), target, requests: requests(args, &path)?, command, yardstick: None })
}

fn requests(args: &LoadArgs, path: &str) -> Result<Vec<Request>, Fault> {
    let own = &args.request;
    let read = |file: &Path, parse: fn(&str, &Path) -> Result<Vec<Request>, String>| {
        let text = std::fs::read_to_string(file)
            .map_err(|error| Fault::usage(format!("cannot read ‘{}’: {error}", file.display())))?;
        parse(&text, file.parent().unwrap_or(Path::new(".")))
            .map_err(|why| Fault::usage(format!("‘{}’ cannot be sent: {why}", file.display())))
    };
    if let Some(file) = &own.request_file {
        return read(file, request_file);
    }
    if let Some(file) = &own.scenario {
        return read(file, scenario);
    }
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
    Ok(vec![Request {
        name: format!("{method} {path}"),
        method,
        headers,
        body,
        check: Check { status: own.expect.clone(), contains: own.expect_text.clone(), ..Check::default() },
        ..Request::get(path)
    }])
}

/// The plan of the whole load; each server has its own requests.
///
/// # Errors
/// When it cannot be carried out.
pub fn plan(args: &LoadArgs, side: &Side, seed: u64) -> Result<Plan, Fault> {
    let amount = &args.amount;
    let arrivals = if amount.poisson { Arrivals::Poisson } else { Arrivals::Constant };
    let pace = match &amount.rate {
        None => Pace::Closed,
        Some(text) => Pace::Open { rate: rate(text)?, arrivals },
    };
    if amount.poisson && amount.rate.is_none() && args.judging.slo.is_none() {
        return Err(Fault::usage("--poisson is about requests that are due at set times: give a --rate"));
    }
    if amount.windows == 0 {
        return Err(Fault::usage("no windows at all hold no requests: give --windows at least 1"));
    }
    let plan = Plan {
        requests: side.requests.clone(),
        order: if args.request.in_turn { Order::InTurn } else { Order::Weighted },
        pace,
        connections: amount.connections,
        grow_to: amount.grow.unwrap_or(0),
        streams: args.connection.streams,
        keep_alive: !args.connection.no_keep_alive,
        threads: amount.threads,
        duration: arms::duration(&amount.duration)?,
        max_requests: amount.requests,
        timeout: arms::duration(&args.connection.timeout)?,
        warm_up: match amount.warm_up.as_str() {
            "auto" => WarmUp::Auto,
            "off" => WarmUp::Off,
            time => WarmUp::For(arms::duration(time)?),
        },
        seed,
        cores: amount.cores.clone(),
        priority: amount.priority,
        ..Plan::of(Request::get("/"))
    };
    plan.validate().map_err(Fault::usage)?;
    Ok(plan)
}

/// Reads a rate such as `2000`, `2k` or `2000/s`.
///
/// # Errors
/// When it is none.
pub fn rate(text: &str) -> Result<f64, Fault> {
    let plain = text.trim().strip_suffix("/s").unwrap_or(text);
    match parse_quantity(plain, &Unit::Count) {
        Ok(rate) if rate > 0.0 => Ok(rate),
        _ => {
            Err(Fault::usage(format!("‘{text}’ is not a rate: give requests per second, such as 2000 or 2k")))
        }
    }
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
    }
}
