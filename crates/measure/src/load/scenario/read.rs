//! Reads scenarios in TOML.

use super::super::request::{Request, RequestOrder};
use super::capture::CaptureSource;
use super::{
    Abort, Capture, DataRows, Model, RequestTemplate, Scenario, SessionStep, Stage, UserSession, placeholders,
};
use entries::{
    AbortEntry, CaptureEntry, DataEntry, Level, RequestEntry, RequestFile, SessionEntry, StageEntry,
    ThinkTime,
};
use regex_lite::Regex;
use scruple_core::harmless_text::list_names;
use scruple_core::line_number::in_line;
use scruple_core::unit::{Unit, parse_quantity};
use std::path::Path;
use std::time::Duration;
use toml::Spanned;

mod entries;

/// The content of a file of requests.
#[derive(Debug)]
pub struct RequestFileContent {
    /// The kinds of requests.
    pub requests: Vec<Request>,
    /// The order in which requests are sent, if there are no sessions.
    pub order: RequestOrder,
    /// The sessions and stages, if the file has any.
    pub scenario: Option<Scenario>,
    /// Limits, each with the name of a kind of request, a group or a session, or with `*` for all requests together.
    pub limits: Vec<(String, String)>,
    /// Notes on how the file was read, for readers of the results.
    pub notes: Vec<String>,
}

/// Reads a scenario in the format that docs/load.md describes. Files that it names are searched in `folder`.
///
/// # Errors
/// Says what is wrong with the scenario, and in which line.
pub fn scenario(text: &str, folder: &Path) -> Result<RequestFileContent, String> {
    let file: RequestFile = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        in_line(text, start, error.message())
    })?;
    RequestFileReader { text, folder, slots: Vec::new(), data: Vec::new(), requests: Vec::new() }
        .read_file(file)
}

/// The state of reading.
struct RequestFileReader<'a> {
    text: &'a str,
    folder: &'a Path,
    /// The names of captured values. Their indices are their slots.
    slots: Vec<String>,
    data: Vec<DataRows>,
    requests: Vec<Request>,
}

impl RequestFileReader<'_> {
    /// The text of an error, with the line that it concerns.
    fn at<T>(&self, spanned: &Spanned<T>, why: impl std::fmt::Display) -> String {
        in_line(self.text, spanned.span().start, why)
    }

    fn read_file(mut self, file: RequestFile) -> Result<RequestFileContent, String> {
        if file.request.is_empty() && file.session.is_empty() {
            return Err("the scenario sends nothing: it has no [[request]] and no [[session]]".to_owned());
        }
        self.name_captures(&file);
        for data in &file.data {
            self.read_data(data)?;
        }
        let think = match &file.think {
            Some(think) => think_time(think.get_ref()).map_err(|why| self.at(think, why))?,
            None => (Duration::ZERO, Duration::ZERO),
        };
        let mut sessions = Vec::new();
        for entry in &file.request {
            let step = self.step(entry, &file, think, &[])?;
            let request = &self.requests[step.request as usize];
            sessions.push(UserSession {
                name: request.name.clone(),
                weight: request.weight,
                sources: self.sources(std::slice::from_ref(&step)),
                steps: vec![step],
            });
        }
        for entry in &file.session {
            sessions.push(self.session(entry, &file, think)?);
        }
        self.names_differ(&sessions)?;
        let stages: Vec<Stage> = file.stage.iter().map(|s| self.stage(s)).collect::<Result<_, _>>()?;
        let model = self.model(&file)?;
        let abort = file.abort.as_ref().map(|abort| self.abort(abort)).transpose()?;
        let limits = self.limits(&file, &sessions)?;
        let plain = file.session.is_empty()
            && file.data.is_empty()
            && stages.is_empty()
            && model.is_none()
            && file.think.is_none()
            && file.redirects.unwrap_or(0) == 0
            && file.cookies != Some(true)
            && abort.is_none()
            && sessions.iter().flat_map(|s| &s.steps).all(|s| s.template.is_none() && s.captures.is_empty())
            && file.request.iter().all(|entry| entry.get_ref().think.is_none());
        let scenario = Scenario {
            model,
            stages,
            cookies: file.cookies.unwrap_or(!file.session.is_empty()),
            sessions,
            order: file.order,
            slots: self.slots.len() + self.data.iter().map(|rows| rows.columns.len()).sum::<usize>(),
            data: self.data,
            redirects: file.redirects.unwrap_or(0),
            abort,
            recorded: Vec::new(),
        };
        let scenario = (!plain).then_some(scenario);
        Ok(RequestFileContent {
            requests: self.requests,
            order: file.order,
            scenario,
            limits,
            notes: Vec::new(),
        })
    }

    fn name_captures(&mut self, file: &RequestFile) {
        let steps = file.session.iter().flat_map(|session| &session.get_ref().request);
        for name in file.request.iter().chain(steps).flat_map(|entry| entry.get_ref().capture.keys()) {
            if !self.slots.contains(name) {
                self.slots.push(name.clone());
            }
        }
    }

    fn read_data(&mut self, entry: &Spanned<DataEntry>) -> Result<(), String> {
        let data = entry.get_ref();
        if self.data.iter().any(|rows| rows.name == data.name) {
            return Err(
                self.at(entry, format!("two data are called ‘{}’: give them different names", data.name))
            );
        }
        let columns: usize = self.data.iter().map(|rows| rows.columns.len()).sum();
        let slot = self.slots.len() + columns;
        let rows = DataRows::read(&data.name, &self.folder.join(&data.file), data.take, slot);
        self.data.push(rows.map_err(|why| self.at(entry, why))?);
        Ok(())
    }

    fn session(
        &mut self,
        entry: &Spanned<SessionEntry>,
        file: &RequestFile,
        think: (Duration, Duration),
    ) -> Result<UserSession, String> {
        let own = entry.get_ref();
        if own.request.is_empty() {
            let why = format!("the session ‘{}’ sends nothing: give it a [[session.request]]", own.name);
            return Err(self.at(entry, why));
        }
        if !(own.weight > 0.0 && own.weight.is_finite()) {
            return Err(self.at(entry, format!("the weight of the session ‘{}’ is not positive", own.name)));
        }
        let mut known: Vec<String> = Vec::new();
        let mut steps = Vec::new();
        for request in &own.request {
            steps.push(self.step(request, file, think, &known)?);
            known.extend(request.get_ref().capture.keys().cloned());
        }
        let sources = self.sources(&steps);
        Ok(UserSession { name: own.name.clone(), weight: own.weight, steps, sources })
    }

    /// The indices of the data whose columns these requests insert.
    fn sources(&self, steps: &[SessionStep]) -> Vec<usize> {
        let templates = || steps.iter().filter_map(|step| step.template.as_ref());
        let used = |rows: &DataRows| {
            let own = rows.slot..rows.slot + rows.columns.len();
            templates().flat_map(RequestTemplate::slots).any(|slot| own.contains(&slot))
        };
        (0..self.data.len()).filter(|index| used(&self.data[*index])).collect()
    }

    /// Reads one request, in which the values `known` may be used because earlier requests capture them.
    fn step(
        &mut self,
        entry: &Spanned<RequestEntry>,
        file: &RequestFile,
        think: (Duration, Duration),
        known: &[String],
    ) -> Result<SessionStep, String> {
        let own = entry.get_ref();
        let request = own.request(&file.headers, self.folder).map_err(|why| self.at(entry, why))?;
        let cut = |text: &str| {
            let mut slot = |name: &str| self.slot(name, known);
            placeholders::pieces(text, &mut slot).map_err(|why| self.at(entry, why))
        };
        let headers = request.headers.iter();
        let body = String::from_utf8(request.body.clone()).unwrap_or_default();
        let template = RequestTemplate {
            path: cut(&request.path)?,
            headers: headers
                .map(|(name, value)| Ok((name.clone(), cut(value)?)))
                .collect::<Result<_, String>>()?,
            body: if own.body.is_some() { cut(&body)? } else { Vec::new() },
        };
        let changes = own.texts().chain(file.headers.values().map(String::as_str)).any(|t| t.contains("${"));
        let request = match changes {
            true => {
                let sample = vec![Some(b"x".to_vec()); self.slots.len() + self.columns()];
                let filled = template.filled(&request, &sample);
                let body = if own.body.is_some() { filled.body } else { request.body };
                Request { body, ..filled }
            }
            false => request,
        };
        request.validate().map_err(|why| self.at(entry, why))?;
        for text in request.check.texts() {
            let values = placeholders::names(&text).unwrap_or_default();
            if let Some((name, _)) = values.iter().find(|(name, _)| self.slot(name, known).is_ok()) {
                let why = format!(
                    "a check is compared as it stands, so ‘${{{name}}}’ would not be replaced by the value: values are \
                     inserted into paths, headers and bodies only"
                );
                return Err(self.at(entry, why));
            }
        }
        let mut captures = Vec::new();
        for (name, capture) in &own.capture {
            let slot = self.slots.iter().position(|other| other == name).unwrap_or(0);
            let from = source(capture).map_err(|why| self.at(entry, format!("the value ‘{name}’: {why}")))?;
            captures.push(Capture { slot, from });
        }
        let think = match &own.think {
            Some(think) => think_time(think).map_err(|why| self.at(entry, why))?,
            None => think,
        };
        let mut request = request;
        request.keep |= !captures.is_empty() || file.redirects.unwrap_or(0) > 0;
        request.keep |= file.cookies.unwrap_or(!file.session.is_empty());
        self.requests.push(request);
        let number = self.requests.len() as u32 - 1;
        Ok(SessionStep { request: number, template: changes.then_some(template), captures, think })
    }

    fn columns(&self) -> usize {
        self.data.iter().map(|rows| rows.columns.len()).sum()
    }

    /// The slot of a value; an error if the name is unknown here.
    fn slot(&self, name: &str, known: &[String]) -> Result<usize, String> {
        if known.iter().any(|other| other == name) {
            return Ok(self.slots.iter().position(|other| other == name).unwrap_or(0));
        }
        let column = |rows: &DataRows| {
            let column = name.strip_prefix(&rows.name)?.strip_prefix('.')?;
            Some(rows.slot + rows.columns.iter().position(|other| other == column)?)
        };
        self.data.iter().find_map(column).ok_or_else(|| {
            let columns = self.data.iter().flat_map(|rows| {
                rows.columns.iter().map(|column| format!("${{{}.{column}}}", rows.name))
            });
            let all: Vec<String> = known.iter().map(|name| format!("${{{name}}}")).chain(columns).collect();
            let known = match all.as_slice() {
                [] => "no value is known here".to_owned(),
                some => format!("known here are {}", some.join(", ")),
            };
            format!(
                "there is no value ‘${{{name}}}’: {known}; a value is known in the requests of a session after the one \
                 that captures it, and a column of [[data]] as ‘${{data.column}}’"
            )
        })
    }

    fn names_differ(&self, sessions: &[UserSession]) -> Result<(), String> {
        let mut names: Vec<&str> = self.requests.iter().map(|request| request.name.as_str()).collect();
        names.extend(sessions.iter().filter(|s| s.steps.len() > 1).map(|session| session.name.as_str()));
        names.extend(self.groups());
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!(
                "‘{}’ is the name of two requests, sessions or groups: give them different names, since each has a row of its own",
                pair[0]
            )),
            None => Ok(()),
        }
    }

    fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = self.requests.iter().filter_map(|r| r.group.as_deref()).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    fn stage(&self, entry: &Spanned<StageEntry>) -> Result<Stage, String> {
        let own = entry.get_ref();
        let duration = duration(&own.duration).map_err(|why| self.at(entry, why))?;
        let level = own.rate.as_ref().or(own.users.as_ref());
        let (from, to) = match (level, own.rate.is_some() && own.users.is_some()) {
            (Some(Level::Constant(level)), false) => (*level, *level),
            (Some(Level::Ramp([from, to])), false) => (*from, *to),
            _ => {
                let why = "a stage has either a rate (sessions per second, the open model) or users (the closed one)";
                return Err(self.at(entry, why));
            }
        };
        if duration.is_zero() {
            return Err(self.at(entry, "a stage must last longer than 0"));
        }
        if [from, to].iter().any(|level| !(0.0..=1e7).contains(level)) {
            return Err(self.at(entry, "a stage goes from 0 to at most ten million"));
        }
        Ok(Stage { duration, from, to })
    }

    fn model(&self, file: &RequestFile) -> Result<Option<Model>, String> {
        let of = |stage: &StageEntry| if stage.users.is_some() { Model::Closed } else { Model::Open };
        let first = file.stage.first().map(|stage| of(stage.get_ref()));
        let model = file.model.or(first);
        let words = |model: Model| match model {
            Model::Open => "the open model has a rate",
            Model::Closed => "the closed model has users",
        };
        match file.stage.iter().find(|stage| Some(of(stage.get_ref())) != model).zip(model) {
            Some((stage, model)) => Err(self.at(stage, format!("{} in each stage", words(model)))),
            None => Ok(model),
        }
    }

    fn abort(&self, entry: &Spanned<AbortEntry>) -> Result<Abort, String> {
        let own = entry.get_ref();
        let at = |why: String| self.at(entry, why);
        let abort = Abort {
            errors: own.errors.as_deref().map(share).transpose().map_err(at)?,
            p99: own.p99.as_deref().map(duration).transpose().map_err(at)?.map(|t| t.as_nanos() as u64),
            over: own.over.as_deref().map_or(Ok(Duration::from_secs(5)), duration).map_err(at)?,
        };
        match abort.errors.is_none() && abort.p99.is_none() {
            true => Err(at("[abort] has no limit: give it ‘errors = \"10%\"’ or ‘p99 = \"2s\"’".into())),
            false => Ok(abort),
        }
    }

    fn limits(&self, file: &RequestFile, sessions: &[UserSession]) -> Result<Vec<(String, String)>, String> {
        let mut known: Vec<&str> = self.requests.iter().map(|request| request.name.as_str()).collect();
        known.extend(self.groups());
        known.extend(sessions.iter().filter(|s| s.steps.len() > 1).map(|session| session.name.as_str()));
        let mut limits = Vec::new();
        for (name, texts) in &file.limits {
            if name != "*" && !known.contains(&name.as_str()) {
                let why = format!(
                    "[limits] is about ‘{name}’, which is not a request, session or group: there are {}, and ‘*’ for all",
                    list_names(&known)
                );
                return Err(self.at(texts, why));
            }
            limits.extend(texts.get_ref().iter().map(|text| (name.clone(), text.clone())));
        }
        Ok(limits)
    }
}

fn source(entry: &CaptureEntry) -> Result<CaptureSource, String> {
    match (&entry.json, &entry.regex, &entry.header) {
        (Some(pointer), None, None) if pointer.is_empty() || pointer.starts_with('/') => {
            Ok(CaptureSource::Json(pointer.clone()))
        }
        (Some(pointer), None, None) => {
            Err(format!("‘{pointer}’ is not a JSON pointer: it begins with ‘/’, as in ‘/user/id’"))
        }
        (None, Some(regex), None) => Regex::new(regex)
            .map(CaptureSource::Regex)
            .map_err(|error| format!("‘{regex}’ is not a regular expression: {error}")),
        (None, None, Some(header)) => Ok(CaptureSource::Header(header.to_ascii_lowercase())),
        _ => Err("give one of json = \"/pointer\", regex = 'expression' and header = \"name\"".to_owned()),
    }
}

fn think_time(think: &ThinkTime) -> Result<(Duration, Duration), String> {
    match think {
        ThinkTime::Constant(time) => duration(time).map(|time| (time, time)),
        ThinkTime::Between([least, most]) => {
            let (least, most) = (duration(least)?, duration(most)?);
            let order = if least <= most { Ok((least, most)) } else { Err(()) };
            order.map_err(|()| "give the shorter think time first: think = [\"1s\", \"3s\"]".to_owned())
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("‘{text}’ is not a time: write for instance 500ms, 30s or 5m");
    let ns = parse_quantity(text, &Unit::Nanoseconds).map_err(|_| wrong())?;
    (0.0..=1e15).contains(&ns).then_some(Duration::from_nanos(ns as u64)).ok_or_else(wrong)
}

fn share(text: &str) -> Result<f64, String> {
    let share = parse_quantity(text, &Unit::Ratio).ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| format!("‘{text}’ is not a share: write for instance 10%"))
}

#[cfg(test)]
mod tests;
