//! Artificial histories for tests, with everything that a report has to handle.

use scruple_core::history::{
    Acceptance, BreakEven, Change, ChangeForm, History, Judgement, Point, Series, Version, VersionEffect,
    VersionState,
};
use scruple_core::metric::{Better, Pass, Quality, metric};
use scruple_core::provenance::Provenance;
use scruple_core::run::Run;
use scruple_core::sample::{Figure, Sample};
use scruple_core::subject::{Arm, Role, Subject};
use scruple_core::unit::Unit;
use scruple_stats::Interval;
use scruple_stats::quantile::median;
use scruple_stats::rng::Pcg;

/// A title that contains markup of every format.
pub(crate) const WICKED: &str =
    "Merge <script>alert(\"x\")</script> & `ticks` | pipes, @someone, #12 \u{1b}[31mred \u{202e}drawkcab; x";

/// The number of readings of each version.
const READINGS: usize = 7;

/// The description of a series to make. Each level starts at the given version.
struct SeriesPlan<'a> {
    subject: &'a str,
    metric: &'a str,
    unit: Unit,
    exact: bool,
    noise: f64,
    levels: Vec<(usize, f64)>,
    changes: Vec<Change>,
}

/// A history and its judgement.
pub(crate) struct JudgedHistory {
    pub(crate) history: History,
    pub(crate) judgement: Judgement,
}

fn change(form: ChangeForm, at: usize, before: usize, from: f64, to: f64, noise: f64) -> Change {
    let ratio = to / from;
    let level = 0.95;
    let interval =
        (noise > 0.0).then_some(Interval { low: ratio * (1.0 - noise), high: ratio * (1.0 + noise), level });
    Change {
        form,
        at,
        set: vec![at],
        before,
        until: None,
        undoes: None,
        from,
        to,
        ratio,
        interval,
        p: if noise > 0.0 { 0.0004 } else { 0.0 },
        better: Some(ratio < 1.0),
        accepted: None,
    }
}

/// Makes a history of 35 versions of an interpreter that becomes a thousand times faster, with all kinds of failures.
pub(crate) fn rich() -> JudgedHistory {
    let mut versions = bare(35);
    let set = |version: &mut Version, state: VersionState, why: &str| {
        version.state = state;
        version.why = Some(why.to_owned());
        version.log = Some(format!("logs/{}.log", version.short()));
    };
    set(
        &mut versions[7],
        VersionState::BuildFailed,
        "cabal build ended with code 1: Variable not in scope: <step>",
    );
    set(
        &mut versions[8],
        VersionState::BuildFailed,
        "cabal build ended with code 1: Variable not in scope: <step>",
    );
    set(
        &mut versions[15],
        VersionState::CheckFailed,
        "the output of ‘init’ is not that of the first version",
    );
    set(&mut versions[22], VersionState::TimedOut, "the build took longer than 10 min");
    versions[12].state = VersionState::SameBinary;
    versions[12].same_as = Some(versions[11].commit.clone());
    versions[12].title = "Mend the README".to_owned();
    for index in [28, 29] {
        versions[index].state = VersionState::Skipped;
    }
    let other = versions[17].commit.clone();
    versions[20].parents.push(other);
    versions[20].title = WICKED.to_owned();
    versions[20].author = "A & B <ab@example.org>".to_owned();
    versions[5].title = "Mutable vectors for the memory".to_owned();
    versions[13].title = "Check every access".to_owned();
    versions[17].title = "Trace each step".to_owned();
    versions[33].title = "Keep modules that were decoded".to_owned();
    versions[0].tags = vec!["v0.9".to_owned()];
    versions[20].tags = vec!["v1.0".to_owned(), "stable".to_owned()];
    versions[33].accepted = vec![Acceptance {
        subject: None,
        metric: Some("memory.peak".to_owned()),
        reason: "modules are kept, see the design".to_owned(),
    }];
    let wall = |at, before, from, to| change(ChangeForm::Step, at, before, from, to, 0.012);
    let exact = |at, before, from, to| change(ChangeForm::Step, at, before, from, to, 0.0);
    let spike =
        |from, to, noise| Change { until: Some(18), ..change(ChangeForm::Spike, 17, 16, from, to, noise) };
    let back =
        |from, to, noise| Change { undoes: Some(17), ..change(ChangeForm::Revert, 19, 18, from, to, noise) };
    let one_of = |change: Change| Change { set: vec![27, 28, 29, 30], before: 26, ..change };
    let accepted =
        |change: Change| Change { accepted: Some("modules are kept, see the design".to_owned()), ..change };
    let plans = vec![
        SeriesPlan {
            subject: "init",
            metric: "start.cold",
            unit: Unit::Nanoseconds,
            exact: false,
            noise: 0.02,
            levels: vec![(0, 41e9), (5, 44.2e9)],
            changes: vec![Change { set: vec![4, 5, 6], before: 3, ..wall(5, 3, 41e9, 44.2e9) }],
        },
        SeriesPlan {
            subject: "init",
            metric: "time.wall",
            unit: Unit::Nanoseconds,
            exact: false,
            noise: 0.012,
            levels: vec![(0, 12.31e9), (5, 138e6), (13, 201e6), (17, 390e6), (19, 201e6), (30, 17.2e6)],
            changes: vec![
                wall(5, 4, 12.31e9, 138e6),
                wall(13, 11, 138e6, 201e6),
                spike(201e6, 390e6, 0.01),
                back(390e6, 201e6, 0.01),
                one_of(wall(30, 26, 201e6, 17.2e6)),
            ],
        },
        SeriesPlan {
            subject: "init",
            metric: "memory.peak",
            unit: Unit::Bytes,
            exact: false,
            noise: 0.003,
            levels: vec![(0, 1.93e9), (5, 2.25e9), (30, 9.1e6), (33, 11.4e6)],
            changes: vec![
                wall(5, 4, 1.93e9, 2.25e9),
                one_of(wall(30, 26, 2.25e9, 9.1e6)),
                accepted(wall(33, 32, 9.1e6, 11.4e6)),
            ],
        },
        SeriesPlan {
            subject: "init",
            metric: "alloc.bytes",
            unit: Unit::Bytes,
            exact: true,
            noise: 0.0,
            levels: vec![
                (0, 44_104_512_344.0),
                (5, 1_009_993_328.0),
                (13, 1_211_991_992.0),
                (24, 1_211_991_976.0),
            ],
            changes: vec![
                exact(5, 4, 44_104_512_344.0, 1_009_993_328.0),
                exact(13, 11, 1_009_993_328.0, 1_211_991_992.0),
                exact(24, 23, 1_211_991_992.0, 1_211_991_976.0),
            ],
        },
        SeriesPlan {
            subject: "parse",
            metric: "time.wall",
            unit: Unit::Nanoseconds,
            exact: false,
            noise: 0.02,
            levels: vec![(0, 5.2e6)],
            changes: Vec::new(),
        },
        SeriesPlan {
            subject: "parse",
            metric: "alloc.bytes",
            unit: Unit::Bytes,
            exact: true,
            noise: 0.0,
            levels: vec![(0, 3_145_728.0), (13, 3_145_760.0)],
            changes: vec![exact(13, 11, 3_145_728.0, 3_145_760.0)],
        },
    ];
    let mut made = made(versions, plans);
    made.judgement.break_even = vec![BreakEven {
        subject: "init".to_owned(),
        from: 0,
        to: 34,
        build: 3.2e9,
        run: -12.2928e9,
        build_surely: true,
        run_surely: true,
        runs: Some(3.2 / 12.2928),
    }];
    made.judgement.series[4].cannot = None;
    made.history.run.warn("waiting", "The machine was busy: commands waited for a core 12 % of their time.");
    made
}

/// Makes a history of `count` versions with four steps in three metrics. Every thirteenth version does not build.
pub(crate) fn long(count: usize) -> JudgedHistory {
    let mut versions = bare(count);
    for (index, version) in versions.iter_mut().enumerate() {
        if index % 13 == 6 {
            version.state = VersionState::BuildFailed;
            version.why = Some("make ended with code 2".to_owned());
        }
        if index % 40 == 0 {
            version.tags = vec![format!("v1.{}", index / 40)];
        }
    }
    let at = |quarter: usize| (count * quarter / 5) / 13 * 13;
    let steps = |first: f64, ratios: [f64; 4], noise: f64| {
        let mut levels = vec![(0, first)];
        let mut changes = Vec::new();
        for (quarter, ratio) in ratios.into_iter().enumerate() {
            let (from, place) = (levels[levels.len() - 1].1, at(quarter + 1));
            if place > levels[levels.len() - 1].0 && ratio != 1.0 {
                changes.push(change(ChangeForm::Step, place, place - 1, from, from * ratio, noise));
                levels.push((place, from * ratio));
            }
        }
        (levels, changes)
    };
    let plan = |metric: &'static str, unit: Unit, first: f64, ratios: [f64; 4], noise: f64| {
        let (levels, changes) = steps(first, ratios, noise);
        SeriesPlan { subject: "serve", metric, unit, exact: noise == 0.0, noise, levels, changes }
    };
    made(
        versions,
        vec![
            plan("time.wall", Unit::Nanoseconds, 80e6, [0.8, 1.3, 0.25, 1.06], 0.02),
            plan("memory.peak", Unit::Bytes, 2.1e8, [1.0, 1.2, 0.5, 1.0], 0.005),
            plan("alloc.bytes", Unit::Bytes, 1_048_576_000.0, [0.5, 1.25, 0.125, 1.0], 0.0),
        ],
    )
}

/// Makes versions that were built, without readings.
pub(crate) fn bare(count: usize) -> Vec<Version> {
    let mixed = |index: usize| (index as u64 + 1).wrapping_mul(0x9e_3779_b97f) & 0xff_ffff_ffff;
    let commit = |index: usize| format!("{:010x}{index:030x}", mixed(index));
    (0..count)
        .map(|index| Version {
            title: format!("Change number {index} of the interpreter"),
            author: "Ada Example".to_owned(),
            time: 1_560_000_000_000 + index as i64 * 7_200_000,
            ..Version::built(commit(index), index.checked_sub(1).map(commit).into_iter().collect())
        })
        .collect()
}

/// Makes a history of these versions, without readings.
pub(crate) fn unread(versions: Vec<Version>) -> JudgedHistory {
    made(versions, Vec::new())
}

fn made(versions: Vec<Version>, plans: Vec<SeriesPlan<'_>>) -> JudgedHistory {
    let mut arms: Vec<Arm> = Vec::new();
    let series = plans.iter().map(|plan| series(&versions, plan, &mut arms)).collect();
    let argv = ["scruple", "history", "v0.9..HEAD", "--remote", "winter folder"].map(str::to_owned).to_vec();
    let provenance = Provenance {
        machine_class: "epyc-2c-x86_64".to_owned(),
        cpu: "AMD EPYC".to_owned(),
        cores: 2,
        memory: 8_000_000_000,
        kernel: "6.1.0".to_owned(),
        os: "Debian 12".to_owned(),
        load: 0.4,
        ..Provenance::default()
    };
    let run = Run {
        id: "20261121-1".to_owned(),
        started: 1_763_730_000_000,
        seed: 42,
        argv,
        provenance,
        ..Run::of(arms)
    };
    let history = History {
        repository: "winter".to_owned(),
        remote: Some("git@github.com:example/winter.git".to_owned()),
        range: "v0.9..HEAD".to_owned(),
        versions,
        run,
    };
    JudgedHistory { history, judgement: Judgement { series, break_even: Vec::new() } }
}

/// Makes the series of a plan, and adds its readings to the figures of the arms.
fn series(versions: &[Version], plan: &SeriesPlan<'_>, arms: &mut Vec<Arm>) -> Series {
    let declared = metric(plan.metric);
    let mut random = Pcg::new(plan.metric.len() as u64);
    let level = |index: usize| plan.levels.iter().rev().find(|(from, _)| *from <= index).map_or(0.0, |l| l.1);
    let mut points: Vec<Point> = Vec::new();
    for (index, version) in versions.iter().enumerate() {
        if version.state == VersionState::SameBinary {
            let built = versions.iter().position(|other| Some(&other.commit) == version.same_as.as_ref());
            let copy = points.iter().find(|point| Some(point.version) == built).cloned();
            points.extend(copy.map(|point| Point { version: index, copied: true, ..point }));
        }
        if version.state != VersionState::Built {
            continue;
        }
        let mut reading = || level(index) * (1.0 + plan.noise * (random.unit() + random.unit() - 1.0));
        let mut readings: Vec<f64> =
            (0..if plan.exact { 2 } else { READINGS }).map(|_| reading().round()).collect();
        if plan.exact {
            readings = vec![level(index); 2];
        }
        push(arms, plan, version, &readings, declared.map_or(Pass::Timing, |metric| metric.pass));
        let value = median(&readings);
        let half = value * plan.noise / 2.0;
        points.push(Point {
            version: index,
            value,
            least: readings.iter().copied().fold(f64::INFINITY, f64::min),
            interval: (!plan.exact).then_some(Interval {
                low: value - half,
                high: value + half,
                level: 0.95,
            }),
            readings,
            copied: false,
        });
    }
    let ends: Vec<usize> =
        plan.levels.iter().skip(1).map(|(from, _)| from - 1).chain([versions.len() - 1]).collect();
    let levels = plan.levels.iter().zip(ends).map(|((from, level), to)| (*from, to, *level)).collect();
    let whole = points.first().zip(points.last()).filter(|(first, last)| first.version < last.version);
    let whole = whole.map(|(first, last)| {
        let ratio = last.value / first.value;
        let (low, high) = (ratio * (1.0 - plan.noise), ratio * (1.0 + plan.noise));
        let interval = (!plan.exact).then_some(Interval { low, high, level: 0.95 });
        let surely = interval.map_or(ratio != 1.0, |interval| !interval.contains(1.0));
        VersionEffect {
            from: first.version,
            to: last.version,
            ratio,
            interval,
            surely,
            levels: None,
            same_artefacts: false,
        }
    });
    Series {
        subject: plan.subject.to_owned(),
        metric: plan.metric.to_owned(),
        unit: plan.unit.clone(),
        better: Better::Lower,
        exact: plan.exact,
        shifting: false,
        points,
        changes: plan.changes.clone(),
        by_nodes: Vec::new(),
        borders: plan.changes.iter().map(|change| [change.before, change.at]).collect(),
        levels,
        noise: Some(plan.noise / 3.0),
        same_binary_noise: (!plan.exact).then_some(plan.noise / 4.0),
        modes: None,
        detectable: (!plan.exact).then_some(plan.noise * 1.5),
        whole,
        slow_drift: None,
        cannot: None,
    }
}

fn push(arms: &mut Vec<Arm>, plan: &SeriesPlan<'_>, version: &Version, readings: &[f64], pass: Pass) {
    let here = |arm: &Arm| arm.name == plan.subject && arm.version.as_ref() == Some(&version.commit);
    let place = arms.iter().position(here).unwrap_or_else(|| {
        let argv = vec![format!("./{}", plan.subject)];
        let mut arm = Arm::new(plan.subject, Subject::Command { argv }, Role::Subject);
        arm.version = Some(version.commit.clone());
        arms.push(arm);
        arms.len() - 1
    });
    let sample = Sample {
        unit: plan.unit.clone(),
        pass,
        quality: if plan.exact { Quality::Exact } else { Quality::Noisy },
        source: "script".to_owned(),
        readings: readings.to_vec(),
        blocks: (0..readings.len() as u32).collect(),
    };
    arms[place].figures.insert(plan.metric.to_owned(), Figure::Sample(sample));
}
