//! `scruple inspect leak`: relates the live heap to the size of the work.

use super::args::LeakArgs;
use super::leak_judgement::LeakReadings;
use super::leak_points::{
    COLLECTIONS, LeakFigure, LeakPoint, LeftOut, MALLOC, OtherMemory, PEAK, PassedOver, RESIDENT, SIZE,
};
use super::leak_schedule::LeakSchedule;
use super::leak_sites::{self, Sites, SizedCommand};
use super::report::leak::{self, Leak};
use super::report::{self};
use super::single_launch;
use crate::cli::values;
use crate::fault::{Code, Fault};
use crate::new_run;
use crate::paths::WorkFolder;
use crate::render::{json, output};
use crate::store::run_writer::RunWriter;
use crate::store::{add_readings, open_store};
use scruple_core::metric::{Pass, metric};
use scruple_core::run::{RunState, Terms};
use scruple_core::sample::Reading;
use scruple_core::subject::{Arm, Parameter, Role, Subject};
use scruple_core::unit::{Unit, parse_quantity};
use scruple_measure::command::{Commands, Job, WeighError, WeighedLaunch, Weigher};
use scruple_measure::heap::HeapInstrument;
use scruple_measure::instrument::Instrument;
use scruple_measure::launcher::Ending;
use scruple_measure::program::Program;
use scruple_measure::runtimes::{self, COMMON, LIVE, Runtime, Runtimes, recognised};
use scruple_measure::scripted::{Script, Scripted};
use scruple_stats::leak::{LEAST_RANGE, LEAST_SIZES, Retained};
use scruple_stats::sorting;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The metrics that may be used. The first one with readings is used.
const FIGURES: [LeakFigure; 3] = [(LIVE, Pass::Counting, 0), MALLOC, RESIDENT];

/// The metrics that are used only if the user names them.
const BY_NAME: [LeakFigure; 2] = [(PEAK, Pass::Counting, 1), ("heap.live_max", Pass::Counting, 2)];

/// The placeholders for the size in the command.
const PLACES: [&str; 2] = ["{size}", "{n}"];

/// Runs every size, judges the growth, and prints the result.
pub fn leak(args: &LeakArgs) -> Result<Code, Fault> {
    let sizes = sizes(args)?;
    let candidates = candidates(args.metric.as_deref())?;
    let smallest = parse_quantity(&args.smallest, &Unit::Bytes)
        .map_err(|why| Fault::usage(format!("cannot read ‘--smallest {}’: {why}", args.smallest)))?;
    let budget = values::duration(&args.budget)?;
    let mut taking = LeakMeasurement::open(args)?;
    let mut schedule = LeakSchedule::new(&sizes, args.runs, budget);
    let mut passed_over = Vec::new();
    let mut taken = None;
    for (key, pass, instrument) in candidates {
        if let Some(why) = taking.out_of_the_question(key, args.metric.is_some()) {
            passed_over.push(PassedOver { metric: key.to_owned(), why });
            continue;
        }
        match taking.all(&mut schedule, (key, pass, instrument), &[])? {
            Ok(points) => {
                taken = Some((key, pass, points));
                break;
            }
            Err(why) => passed_over.push(PassedOver { metric: key.to_owned(), why }),
        }
    }
    let Some((key, pass, points)) = taken else {
        let reasons: Vec<String> =
            passed_over.iter().map(|one| format!("{}: {}", one.metric, one.why)).collect();
        return Err(Fault {
            code: Code::Unknown,
            message: format!(
                "no figure of ‘{}’ is available; {}",
                args.command.join(" "),
                reasons.join("; ")
            ),
        });
    };
    let was_run = |(size, _): &(f64, String)| points.iter().any(|point| point.size == *size);
    let sizes: Vec<(f64, String)> = sizes.into_iter().filter(was_run).collect();
    let mut other_memory = OtherMemory::default();
    let mut collections = None;
    let mut tried = Vec::new();
    let judgement = loop {
        let count = collections.as_ref().map(|(_, count)| count);
        let named = args.metric.is_some();
        let readings = LeakReadings::of_launches((key, named), &points, &other_memory, count);
        let judgement = readings.judge(smallest);
        let Some(unread) = judgement.unread.iter().find(|key| !tried.contains(*key)) else { break judgement };
        tried.push(*unread);
        match *unread {
            COLLECTIONS if taking.is_collected => {
                collections = taking.collections(&sizes, schedule.left())?
            }
            COLLECTIONS => {}
            key if key == MALLOC.0 => {
                taking.read_malloc(&mut other_memory, &sizes, &points, schedule.left())?
            }
            _ => taking.read_other(&mut other_memory, RESIDENT, &sizes, &points, schedule.left())?,
        }
    };
    let command = args.command.clone();
    let sites = taking.sites(&sizes, &points, key, &judgement.verdict, schedule.left())?;
    let left_out = LeftOut::of(&schedule, points.len());
    let found = Leak {
        command,
        metric: key,
        pass,
        passed_over,
        points,
        judgement,
        other_memory,
        collections,
        sites,
        left_out,
    };
    keep(args, &found, &sizes, taking.programs(&sizes))?;
    let text =
        if args.json { json::document(&leak::report(&found)) } else { leak::text(&found, output::width()) };
    output::print(&text)?;
    Ok(match (&found.judgement.verdict, args.check) {
        (Retained::Grows { .. }, true) => Code::GateFailed,
        (Retained::Unknown(_), true) => Code::Unknown,
        _ => Code::Fine,
    })
}

/// Returns the keys of the metrics that can reveal a leak, the preferred one first.
pub fn figures() -> impl Iterator<Item = &'static str> {
    FIGURES.iter().chain(&BY_NAME).map(|(key, ..)| *key)
}

/// Stores the readings, with an arm for each size.
fn keep(args: &LeakArgs, found: &Leak, sizes: &[(f64, String)], programs: Vec<PathBuf>) -> Result<(), Fault> {
    let Some(store) = open_store::for_run(&args.store)? else { return Ok(()) };
    let programs: Vec<&Path> = programs.iter().map(PathBuf::as_path).collect();
    let mut run = new_run::empty_run(None, args.store.label.as_deref(), Terms::default(), &programs);
    for (size, written) in sizes {
        let argv = words(&args.command, written);
        let mut arm = Arm::new(argv.join(" "), Subject::Command { argv }, Role::Subject);
        arm.params.insert(SIZE.to_owned(), Parameter::Number(*size));
        let points = found.points.iter().filter(|point| point.size == *size);
        for (block, point) in points.enumerate() {
            add_readings(&mut arm, point.deciding_readings().cloned(), found.pass, block as u32);
        }
        for other in found.other_memory.at(*size) {
            for (key, pass, _) in FIGURES.iter().chain(&BY_NAME) {
                let of_figure = other.deciding_readings().filter(|reading| reading.key == *key);
                add_readings(&mut arm, of_figure.cloned(), *pass, 0);
            }
        }
        let collections = found.collections.iter().filter(|(of, _)| of == size);
        add_readings(&mut arm, collections.map(|(_, count)| count.clone()), Pass::Counting, 0);
        run.arms.push(arm);
    }
    let mut writer = RunWriter::begin(Some(store), &run)?;
    run.state = RunState::Complete;
    if let Some(section) = report::leak_sites::section(&found.sites) {
        writer.keep_sections(&run, &[section]);
    }
    writer.finish(&run);
    writer.fault.as_ref().map_or(Ok(()), |error| Err(error.after_measuring()))
}

/// Returns the words of the command, with the size in place of the placeholders.
fn words(command: &[String], size: &str) -> Vec<String> {
    let each = command.iter();
    each.map(|word| PLACES.iter().fold(word.clone(), |word, place| word.replace(place, size))).collect()
}

/// Returns the sizes as numbers and as the texts that the program receives, smallest first.
fn sizes(args: &LeakArgs) -> Result<Vec<(f64, String)>, Fault> {
    if !args.command.iter().any(|word| PLACES.iter().any(|place| word.contains(place))) {
        return Err(Fault::usage(
            "the command has no {size}: write it where the program takes the size of its work, as in -- ./prog {size}",
        ));
    }
    if args.runs == 0 {
        return Err(Fault::usage("zero launches show nothing: give --runs at least 1"));
    }
    let mut sizes = Vec::new();
    for text in &args.sizes {
        let size = parse_quantity(text, &Unit::Count)
            .map_err(|why| Fault::usage(format!("cannot read the size ‘{text}’: {why}")))?;
        if size <= 0.0 {
            return Err(Fault::usage(format!("the size ‘{text}’ is not above zero")));
        }
        let written =
            if text.trim().parse::<f64>().is_ok() { text.trim().to_owned() } else { size.to_string() };
        sizes.push((size, written));
    }
    sorting::by(&mut sizes, |a, b| a.0.total_cmp(&b.0));
    sizes.dedup_by(|a, b| a.0 == b.0);
    if sizes.len() < LEAST_SIZES || sizes[sizes.len() - 1].0 < LEAST_RANGE * sizes[0].0 {
        return Err(Fault::usage(
            "at least four sizes are needed, the largest at least four times the smallest, such as \
             --sizes 1000,2000,4000,8000,16000",
        ));
    }
    Ok(sizes)
}

fn candidates(asked: Option<&str>) -> Result<Vec<LeakFigure>, Fault> {
    let Some(asked) = asked else { return Ok(FIGURES.to_vec()) };
    match FIGURES.iter().chain(&BY_NAME).find(|(key, _, _)| *key == asked) {
        Some(figure) => Ok(vec![*figure]),
        None => Err(Fault::usage(format!(
            "‘{asked}’ does not show a leak: use heap.live, malloc.live, memory.peak, malloc.peak or heap.live_max"
        ))),
    }
}

/// The ways to launch the program.
enum Launches {
    Scripted(Box<Scripted>),
    Real(Box<Commands>),
}

impl Launches {
    fn any(&mut self) -> &mut dyn Weigher {
        match self {
            Launches::Scripted(scripted) => &mut **scripted,
            Launches::Real(commands) => &mut **commands,
        }
    }
}

/// The state of the measurement.
struct LeakMeasurement<'a> {
    args: &'a LeakArgs,
    weigher: Launches,
    /// Whether the objects of the program are in the heap of a language runtime, not malloc's, and the runtime did not
    /// report the requested metric.
    managed: bool,
    /// Whether a language runtime was recognised that frees memory only when it collects.
    is_collected: bool,
    // The folder must exist until the end, because instruments write their data to it.
    _work: Option<WorkFolder>,
}

impl LeakMeasurement<'_> {
    fn open(args: &LeakArgs) -> Result<LeakMeasurement<'_>, Fault> {
        if let Some(path) = &args.scripted {
            let unread = |error: String| {
                Fault::usage(format!("‘{}’ is not a script of readings: {error}", path.display()))
            };
            let text = std::fs::read_to_string(path).map_err(|error| unread(error.to_string()))?;
            let script: Script = serde_json::from_str(&text).map_err(|error| unread(error.to_string()))?;
            return Ok(LeakMeasurement {
                args,
                weigher: Launches::Scripted(Box::new(Scripted::new(script))),
                managed: false,
                is_collected: false,
                _work: None,
            });
        }
        let launcher = single_launch::launcher()?;
        let work = WorkFolder::make()?;
        let instruments: Vec<Box<dyn Instrument>> = vec![
            Box::new(Runtimes::new().collecting_fully()),
            Box::new(HeapInstrument::new(work.path())),
            Box::new(Runtimes::new()),
        ];
        let weigher = Launches::Real(Box::new(single_launch::commands(launcher, instruments)?));
        Ok(LeakMeasurement { args, weigher, managed: false, is_collected: false, _work: Some(work) })
    }

    /// Says why a metric would be misleading whatever its value is, if so.
    fn out_of_the_question(&self, key: &str, asked: bool) -> Option<String> {
        (key == "malloc.live" && self.managed && !asked)
            .then(|| "the program’s objects are its language runtime’s, which malloc does not see".to_owned())
    }

    /// Reads a metric in the launches that the schedule makes, or says why it is not available. The variables are added to
    /// the environment of these launches.
    fn all(
        &mut self,
        schedule: &mut LeakSchedule,
        (key, pass, instrument): LeakFigure,
        env: &[(OsString, OsString)],
    ) -> Result<Result<Vec<LeakPoint>, String>, Fault> {
        let mut points = Vec::new();
        schedule.begin();
        while let Some(turn) = schedule.next(points.len(), &self.args.command.join(" ")) {
            let (size, written) = schedule.size(turn.size).clone();
            let asked = self.job(&written)?;
            let limited = asked.time_limit.is_none_or(|limit| limit > turn.left);
            let job = Job {
                env: env.to_vec(),
                time_limit: asked.time_limit.map_or(turn.left, |limit| limit.min(turn.left)).into(),
                ..asked
            };
            let weighed = self.weigher.any().weigh(&job, pass, instrument, 0);
            if limited && timed_out(&weighed) {
                schedule.cut();
                continue;
            }
            if let Err(WeighError::Script(why)) = &weighed {
                return Ok(Err(why.clone()));
            }
            let WeighedLaunch { readings, wall, .. } = single_launch::ended_well(&job, weighed)?;
            let common = |reading: &&Reading| COMMON.contains(&reading.key.as_str());
            self.managed |= readings.iter().filter(common).any(|reading| reading.value.is_ok());
            for runtime in readings.iter().filter(|reading| reading.key == LIVE).flat_map(recognised) {
                self.managed |= !runtime.leaves_objects_in_malloc();
                self.is_collected |= runtime.collects_its_heap();
            }
            match LeakPoint::of(size, key, readings, wall) {
                Ok(point) => points.push(point),
                Err(why) => return Ok(Err(why)),
            }
            schedule.made(turn.size, wall);
        }
        if points.is_empty() {
            return Ok(Err(format!(
                "the smallest size did not end within the budget of {}: give smaller --sizes or a longer --budget",
                self.args.budget
            )));
        }
        sorting::by(&mut points, |a: &LeakPoint, b: &LeakPoint| a.size.total_cmp(&b.size));
        Ok(Ok(points))
    }

    /// Reads the bytes of malloc that were not freed, once for each size, in a program whose live heap does not grow. A
    /// Java virtual machine takes more and more from malloc for its compiler while it runs, so this would show nothing
    /// there.
    fn read_malloc(
        &mut self,
        other: &mut OtherMemory,
        sizes: &[(f64, String)],
        points: &[LeakPoint],
        left: Duration,
    ) -> Result<(), Fault> {
        match of_runtime(points, Runtime::Jvm) {
            true => Ok(()),
            false => self.read_other(other, MALLOC, sizes, points, left),
        }
    }

    /// Reads a metric of the memory that the figure does not contain, once for each size.
    fn read_other(
        &mut self,
        other: &mut OtherMemory,
        figure: LeakFigure,
        sizes: &[(f64, String)],
        points: &[LeakPoint],
        left: Duration,
    ) -> Result<(), Fault> {
        let runtimes = runtimes::ALL.into_iter().filter(|runtime| of_runtime(points, *runtime));
        let env: Vec<(OsString, OsString)> = runtimes.flat_map(Runtime::settings_for_resident_size).collect();
        let mut schedule = LeakSchedule::new(sizes, 1, left);
        let unread = match self.all(&mut schedule, figure, &env) {
            Err(fault) if fault.code == Code::Interrupted => return Err(fault),
            Err(fault) => Some(fault.message),
            Ok(Err(_)) if self.args.scripted.is_some() => None,
            Ok(Err(why)) => Some(why),
            Ok(Ok(points)) if points.len() < sizes.len() => Some("the budget was spent".to_owned()),
            Ok(Ok(points)) => {
                other.points.extend(points);
                None
            }
        };
        if figure.0 == RESIDENT.0 {
            other.resident_unread = unread;
        }
        Ok(())
    }

    /// Reads the number of collections with the second largest size. If that would take too long, it is absent.
    fn collections(
        &mut self,
        sizes: &[(f64, String)],
        left: Duration,
    ) -> Result<Option<(f64, Reading)>, Fault> {
        let Some(second) = sizes.len().checked_sub(2).map(|at| &sizes[at..=at]) else { return Ok(None) };
        let mut schedule = LeakSchedule::new(second, 1, left);
        let count = match self.all(&mut schedule, (COLLECTIONS, Pass::Counting, 2), &[])? {
            Ok(points) => points.into_iter().find_map(|point| point.deciding_readings().next().cloned()),
            Err(why) => metric(COLLECTIONS).map(|metric| Reading::absent(metric, why)),
        };
        Ok(count.map(|count| (second[0].0, count)))
    }

    /// Looks for the sites that keep the memory. Scripted readings have none.
    fn sites(
        &mut self,
        sizes: &[(f64, String)],
        points: &[LeakPoint],
        key: &str,
        verdict: &Retained,
        left: Duration,
    ) -> Result<Sites, Fault> {
        let sized = |(size, written): &(f64, String)| {
            let walls = points.iter().filter(|point| point.size == *size).map(|point| point.wall);
            Ok(SizedCommand { size: *size, job: self.job(written)?, wall: walls.min().unwrap_or_default() })
        };
        let sized = sizes.iter().map(sized).collect::<Result<Vec<SizedCommand>, Fault>>()?;
        match &mut self.weigher {
            Launches::Scripted(_) => Ok(Sites::NotWanted),
            Launches::Real(commands) => {
                leak_sites::find(commands, sized, key, verdict, self.args.sites, left)
            }
        }
    }

    /// Returns the path of the program. A program of scripted readings need not exist.
    fn programs(&self, sizes: &[(f64, String)]) -> Vec<PathBuf> {
        let first = sizes.first().filter(|_| self.args.scripted.is_none());
        first.and_then(|(_, size)| self.job(size).ok()).map(|job| job.program.path).into_iter().collect()
    }

    fn job(&self, size: &str) -> Result<Job, Fault> {
        let words = words(&self.args.command, size);
        match self.args.scripted {
            None => single_launch::job(&words, self.args.time_limit.as_deref()),
            // A program of scripted readings need not exist.
            Some(_) => {
                let name = words.join(" ");
                let anything = single_launch::job(&["true".to_owned()], None)?;
                Ok(Job { name, program: Program { path: Default::default() }, ..anything })
            }
        }
    }
}

/// Whether this language runtime reported the live heap in one of the launches.
fn of_runtime(points: &[LeakPoint], runtime: Runtime) -> bool {
    points.iter().any(|point| point.source(LIVE).contains(runtime.word()))
}

fn timed_out(weighed: &Result<WeighedLaunch, WeighError>) -> bool {
    weighed.as_ref().is_ok_and(|weighing| weighing.ending == Ending::TimedOut)
}
