//! `scruple store export`: writes every reading of stored runs, one in each row.

use super::args::{RowFormat, StoreExportArgs};
use super::{Store, StoreError, open_store};
use crate::fault::{Code, Fault};
use crate::render::csv::quoted;
use crate::render::json::{inert, timestamp};
use crate::render::output::check_writable;
use clap::ValueEnum;
use scruple_core::harmless_text::for_terminal;
use scruple_core::run::Run;
use scruple_core::sample::Figure;
use scruple_core::subject::Parameter;
use scruple_stats::sorting::SortedMap;
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};

/// A reading, or the reason why it is absent.
#[derive(Serialize)]
struct ExportedReading<'a> {
    run: &'a str,
    label: Option<&'a str>,
    started: &'a str,
    arm: &'a str,
    role: &'static str,
    version: Option<&'a str>,
    params: &'a SortedMap<String, Parameter>,
    metric: &'a str,
    unit: Option<&'a str>,
    pass: Option<&'static str>,
    quality: Option<&'static str>,
    source: Option<&'a str>,
    block: Option<u32>,
    value: Option<f64>,
    absent: Option<&'a str>,
}

/// The first line of CSV.
pub(super) const HEAD: &str =
    "run,label,started,arm,role,version,params,metric,unit,pass,quality,source,block,value,absent";

/// Writes the rows of the requested runs.
pub fn export(args: &StoreExportArgs) -> Result<Code, Fault> {
    let format = format(args)?;
    let store = open_store::existing(args.store.as_deref())?;
    let ids: Vec<String> = match args.runs.is_empty() {
        true => store.list(usize::MAX)?.into_iter().rev().map(|run| run.id).collect(),
        false => args.runs.iter().map(|name| store.find_id(name)).collect::<Result<_, _>>()?,
    };
    let file = args.export.as_ref().filter(|path| path.as_os_str() != "-");
    file.map_or(Ok(()), |path| check_writable(path))?;
    let target: Box<dyn Write> = match file {
        Some(path) => Box::new(File::create(path).map_err(|error| Fault::unwritable_export(path, error))?),
        None => Box::new(std::io::stdout().lock()),
    };
    match write(&store, &ids, format, &mut BufWriter::new(target))? {
        // The reader of standard output may have closed the pipe.
        Err(error) if file.is_none() && error.kind() == ErrorKind::BrokenPipe => Ok(Code::Fine),
        Err(error) => {
            let name = file.map_or("standard output".to_owned(), |path| format!("‘{}’", path.display()));
            Err(Fault::usage(format!("cannot write {name}: {error}; what was written is not complete")))
        }
        Ok(()) => Ok(Code::Fine),
    }
}

/// The format that is requested, or else the one that the ending of the file names.
fn format(args: &StoreExportArgs) -> Result<RowFormat, Fault> {
    let named = args.export.as_ref().and_then(|path| Some((path, path.extension()?.to_str()?)));
    match (args.format, named) {
        (Some(format), _) => Ok(format),
        (None, None) => Ok(RowFormat::Jsonl),
        (None, Some((path, ending))) => RowFormat::from_str(ending, true).map_err(|_| {
            Fault::usage(format!(
                "cannot export ‘{}’: this verb writes .jsonl and .csv for other programs, and --format names the format of \
                 other files; for `scruple store import`, write a run with `scruple show RUN --json > FILE`",
                path.display()
            ))
        }),
    }
}

/// Writes the rows. The outer error comes from the store, the inner one from the output. The runs that can be read are
/// written even if others are damaged.
fn write(
    store: &Store,
    ids: &[String],
    format: RowFormat,
    out: &mut impl Write,
) -> Result<std::io::Result<()>, Fault> {
    if format == RowFormat::Csv
        && let Err(error) = writeln!(out, "{HEAD}")
    {
        return Ok(Err(error));
    }
    let mut damage = None;
    for id in ids {
        let run = match store.with_id(id) {
            Ok(Some(run)) => run,
            // Another process may have removed it since it was listed.
            Ok(None) => continue,
            Err(damaged @ StoreError::Corrupt { .. }) => {
                damage = Some(damaged);
                continue;
            }
            Err(other) => return Err(other.into()),
        };
        if let Err(error) = write_run(&run, format, out) {
            return Ok(Err(error));
        }
    }
    match (out.flush(), damage) {
        (Ok(()), Some(damaged)) => Err(damaged.into()),
        (flushed, _) => Ok(flushed),
    }
}

fn write_run(run: &Run, format: RowFormat, out: &mut impl Write) -> std::io::Result<()> {
    let started = timestamp(run.started);
    for arm in &run.arms {
        for (metric, figure) in &arm.figures {
            let line = ExportedReading {
                run: &run.id,
                label: run.label.as_deref(),
                started: &started,
                arm: &arm.name,
                role: arm.role.word(),
                version: arm.version.as_deref(),
                params: &arm.params,
                metric,
                unit: None,
                pass: None,
                quality: None,
                source: None,
                block: None,
                value: None,
                absent: None,
            };
            match figure {
                Figure::Absent { absent } => {
                    write_line(&ExportedReading { absent: Some(absent), ..line }, format, out)?;
                }
                Figure::Sample(sample) => {
                    let line = ExportedReading {
                        unit: Some(sample.unit.name()),
                        pass: Some(sample.pass.word()),
                        quality: Some(sample.quality.word()),
                        source: Some(&sample.source),
                        ..line
                    };
                    for (block, value) in sample.blocks.iter().zip(&sample.readings) {
                        let line = ExportedReading { block: Some(*block), value: Some(*value), ..line };
                        write_line(&line, format, out)?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn write_line(line: &ExportedReading<'_>, format: RowFormat, out: &mut impl Write) -> std::io::Result<()> {
    if format == RowFormat::Jsonl {
        return writeln!(out, "{}", inert(&serde_json::to_string(line)?));
    }
    let text = |text: Option<&str>| quoted(text.unwrap_or(""));
    let params = match line.params.is_empty() {
        true => String::new(),
        false => quoted(&serde_json::to_string(line.params)?),
    };
    let cells = [
        text(Some(line.run)),
        text(line.label),
        text(Some(line.started)),
        text(Some(line.arm)),
        text(Some(line.role)),
        text(line.version),
        params,
        text(Some(line.metric)),
        text(line.unit),
        text(line.pass),
        text(line.quality),
        text(line.source),
        line.block.map_or(String::new(), |block| block.to_string()),
        line.value.map_or(String::new(), |value| value.to_string()),
        text(line.absent),
    ];
    writeln!(out, "{}", for_terminal(&cells.join(",")))
}
