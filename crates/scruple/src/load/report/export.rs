//! Writes the export formats that only loads have: distributions for other tools, and every single request.

pub mod requests;

use crate::fault::Fault;
use crate::load::windows::Loads;
use crate::render::export::Formats;
use crate::render::output::write_file;
use scruple_measure::load::hdr_log;
use std::path::{Path, PathBuf};

/// A function that writes one file for each server.
type ServerWriter = fn(&Path, &Loads) -> Result<(), Fault>;

/// The formats that only loads have, by the endings of their files.
pub const FORMATS: Formats<ServerWriter, 2> = [("hgrm", hgrm), ("hlog", hlog)];

/// Returns the path for each server. The first one is the given path; the others contain the number of the server
/// before the ending.
fn each_server(path: &Path, loads: &Loads) -> impl Iterator<Item = PathBuf> {
    let ending = path.extension().map(|ending| ending.to_string_lossy().into_owned()).unwrap_or_default();
    let path = path.to_owned();
    (0..loads.servers.len()).map(move |index| match index {
        0 => path.clone(),
        _ => path.with_extension(format!("{index}.{ending}")),
    })
}

/// Writes the distribution of each server's response times in HdrHistogram's text format.
pub fn hgrm(path: &Path, loads: &Loads) -> Result<(), Fault> {
    each_server(path, loads)
        .zip(&loads.servers)
        .try_for_each(|(path, server)| write_file(&path, server.pool.times.response.hgrm().as_bytes()))
}

/// Writes the response times of each part of the load as an HdrHistogram log, version 2.
pub fn hlog(path: &Path, loads: &Loads) -> Result<(), Fault> {
    each_server(path, loads).zip(&loads.servers).try_for_each(|(path, server)| {
        let parts = server
            .pool
            .timeline
            .iter()
            .map(|slice| (slice.began, (slice.to - slice.from).max(0) as u64, slice.response.clone()));
        let log = hdr_log(parts)
            .map_err(|error| Fault::internal(format!("the HdrHistogram log cannot be written: {error}")))?;
        write_file(&path, log.as_bytes())
    })
}
