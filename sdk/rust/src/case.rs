//! The properties of a case, and the handle that sets them.

use crate::body::{Check, Timing, Verdict};
use crate::json::{self, Object};
use crate::queue::{Flow, Passing};
use std::panic::Location;
use std::time::Duration;

/// The properties that do not depend on the body.
pub struct Declaration {
    pub name: String,
    pub source: &'static Location<'static>,
    pub params: Vec<(String, Param)>,
    pub shape: Option<String>,
    pub group: Option<String>,
    pub throughput: Option<(&'static str, f64)>,
    pub threads: Vec<usize>,
    pub budgets: Vec<(String, Limit)>,
    pub tags: Vec<String>,
    pub fresh: bool,
    pub per_iteration_input: bool,
    pub max_iterations: Option<u64>,
    pub time_limit: Option<Duration>,
    pub checked: bool,
    pub timing: Timing,
    /// Whether argument and result are scalars, so that an iteration can wait for the previous one.
    pub can_chain: bool,
    pub passing: Option<Passing>,
}

/// The value of a param. Growth is fitted over numeric params.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    /// A number.
    Number(f64),
    /// Text.
    Text(String),
}

impl From<&str> for Param {
    fn from(text: &str) -> Param {
        Param::Text(text.to_owned())
    }
}

impl From<String> for Param {
    fn from(text: String) -> Param {
        Param::Text(text)
    }
}

macro_rules! numbers {
    ($($t:ty)*) => {$(
        impl From<$t> for Param {
            fn from(number: $t) -> Param { Param::Number(number as f64) }
        }
        impl From<$t> for Limit {
            fn from(number: $t) -> Limit { Limit::At(number as f64) }
        }
    )*};
}
numbers!(i32 i64 u32 u64 usize f64);

/// The maximum of a metric per iteration.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// An amount in the metric's own unit, such as nanoseconds or bytes.
    At(f64),
    /// A change relative to the baseline, such as `+5%`.
    Above(String),
}

impl From<&str> for Limit {
    fn from(text: &str) -> Limit {
        Limit::Above(text.to_owned())
    }
}

impl Declaration {
    #[track_caller]
    pub fn new(name: &str) -> Declaration {
        Declaration {
            name: name.to_owned(),
            source: Location::caller(),
            params: Vec::new(),
            shape: None,
            group: None,
            throughput: None,
            threads: Vec::new(),
            budgets: Vec::new(),
            tags: Vec::new(),
            fresh: false,
            per_iteration_input: false,
            max_iterations: None,
            time_limit: None,
            checked: false,
            timing: Timing::Throughput,
            can_chain: false,
            passing: None,
        }
    }

    /// Returns name and params as one text, which is unique among the cases.
    pub fn identity(&self) -> String {
        format!("{}\0{}", self.name, self.params().done())
    }

    fn params(&self) -> Object {
        self.params.iter().fold(Object::default(), |object, (key, value)| match value {
            Param::Number(n) if n.is_finite() => object.number(key, *n),
            Param::Number(n) => object.text(key, &n.to_string()),
            Param::Text(text) => object.text(key, text),
        })
    }

    fn budgets(&self) -> Object {
        self.budgets.iter().fold(Object::default(), |object, (metric, limit)| {
            let limit = match limit {
                Limit::At(n) => Object::default().number("max", *n),
                Limit::Above(text) => Object::default().text("max", text).text("against", "baseline"),
            };
            object.object(metric, limit)
        })
    }

    /// Returns the case as an object of the reply to `cases`.
    pub fn tell(&self, id: usize) -> Object {
        let mut case = Object::default().integer("id", id as u64).text("name", &self.name);
        case = case.text("source", &format!("{}:{}", self.source.file(), self.source.line()));
        for (key, text) in [("group", &self.group), ("shape", &self.shape)] {
            if let Some(text) = text {
                case = case.text(key, text);
            }
        }
        for (key, object) in [("params", self.params()), ("budgets", self.budgets())] {
            if !object.is_empty() {
                case = case.object(key, object);
            }
        }
        if self.passing.is_none() {
            let latency = self.timing == Timing::Latency;
            case = case.text("timing", if latency { "latency" } else { "throughput" });
        }
        if let Some((unit, amount)) = self.throughput {
            case = case.object("throughput", Object::default().text("unit", unit).number("amount", amount));
        }
        if !self.threads.is_empty() {
            case = case.list("threads", self.threads.iter().map(usize::to_string));
        }
        if !self.tags.is_empty() {
            case = case.list("tags", self.tags.iter().map(|tag| json::string(tag)));
        }
        for (key, flag) in [
            ("fresh", self.fresh),
            ("per_iteration_input", self.per_iteration_input),
            ("checked", self.checked),
        ] {
            if flag {
                case = case.flag(key, true);
            }
        }
        for (key, n) in [
            ("max_iterations", self.max_iterations),
            ("time_limit", self.time_limit.map(|d| d.as_nanos() as u64)),
        ] {
            if let Some(n) = n {
                case = case.integer(key, n);
            }
        }
        match &self.passing {
            Some(passing) => passing.tell(case),
            None => case,
        }
    }
}

/// A declared case. Each method sets one property.
pub struct Case<'a, R> {
    pub(crate) declaration: &'a mut Declaration,
    pub(crate) checker: Check<R>,
}

impl<R: 'static> Case<'_, R> {
    /// Checks the result of one run. An error says why the result is wrong. The optional text is a digest by which the
    /// outputs of two versions are compared.
    pub fn check(self, check: impl Fn(&R) -> Verdict + 'static) -> Self {
        self.checker.replace(Some(Box::new(check)));
        self.declaration.checked = true;
        self
    }

    /// Adds a parameter, which distinguishes this case from others with its name.
    pub fn param(self, key: &str, value: impl Into<Param>) -> Self {
        self.declaration.params.push((key.to_owned(), value.into()));
        self
    }

    /// Sets the number of bytes that one iteration processes.
    pub fn throughput_bytes(self, bytes: u64) -> Self {
        self.declaration.throughput = Some(("bytes", bytes as f64));
        self
    }

    /// Sets the number of items that one iteration processes.
    pub fn throughput_items(self, items: u64) -> Self {
        self.declaration.throughput = Some(("items", items as f64));
        self
    }

    /// Times latency: from argument to result, so that every iteration waits for the result of the previous one. This
    /// is the default, and is possible, only if both are numbers, characters or booleans.
    ///
    /// # Panics
    ///
    /// If argument or result has another type.
    pub fn latency(self) -> Self {
        let name = &self.declaration.name;
        assert!(self.declaration.can_chain, "‘{name}’ has no latency: argument and result must be scalars");
        self.declaration.timing = Timing::Latency;
        self
    }

    /// Times throughput: from one result to the next. Iterations are independent, and the processor may overlap them.
    pub fn throughput(self) -> Self {
        self.declaration.timing = Timing::Throughput;
        self
    }

    /// Limits a metric per iteration: `budget("time.wall", 1500)`. `budget("malloc.bytes", "+5%")` needs something to
    /// compare with: `--against` or `--baseline`.
    pub fn budget(self, metric: &str, max: impl Into<Limit>) -> Self {
        self.declaration.budgets.push((metric.to_owned(), max.into()));
        self
    }

    /// Adds a word by which cases can be selected.
    pub fn tag(self, tag: &str) -> Self {
        self.declaration.tags.push(tag.to_owned());
        self
    }

    /// Sets the group of the case in reports, which is by default the name up to its last `/`.
    pub fn group(self, group: &str) -> Self {
        self.declaration.group = Some(group.to_owned());
        self
    }

    /// Sets the shape of the tare, which cases of one shape share. By default, it is the types of argument and result.
    pub fn shape(self, shape: &str) -> Self {
        self.declaration.shape = Some(shape.to_owned());
        self
    }

    /// Times the case in separate processes.
    pub fn fresh(self) -> Self {
        self.declaration.fresh = true;
        self
    }

    /// Sets the time limit of one batch.
    pub fn time_limit(self, limit: Duration) -> Self {
        self.declaration.time_limit = Some(limit);
        self
    }

    /// Sets the maximum number of iterations of one batch.
    pub fn max_iterations(self, most: u64) -> Self {
        self.declaration.max_iterations = Some(most);
        self
    }
}

impl Case<'_, Flow> {
    fn passing(self, change: impl FnOnce(&mut Passing)) -> Self {
        if let Some(passing) = &mut self.declaration.passing {
            change(passing);
        }
        self
    }

    /// Sets the capacity of the queue in elements, which the report shows. By default, the queue is unbounded.
    pub fn capacity(self, capacity: usize) -> Self {
        self.passing(|p| p.capacity = Some(capacity))
    }

    /// Sets the number of elements that pass when fairness is observed. The default is 20,000.
    pub fn once_elements(self, elements: u64) -> Self {
        self.passing(|p| p.once_elements = elements)
    }

    /// Sets the time without any moving element after which Scruple judges why none moves. The default is 1 s.
    pub fn stall(self, limit: Duration) -> Self {
        self.passing(|p| p.stall = limit)
    }
}
