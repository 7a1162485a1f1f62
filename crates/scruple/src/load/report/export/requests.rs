//! Writes every request of a load to a file while the load runs.

use crate::fault::Fault;
use crate::render::csv::quoted;
use crate::render::export::Formats;
use scruple_measure::load::{EachRequest, RequestBatch, RequestReceiver};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

/// The format of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFormat {
    /// Comma-separated values.
    Csv,
    /// JSON lines, with an object in each line.
    JsonLines,
}

/// The formats of files of requests, by their endings.
pub const FORMATS: Formats<RequestFormat, 2> =
    [("requests", RequestFormat::Csv), ("jsonl", RequestFormat::JsonLines)];

/// Returns the name at an index, or an empty text.
fn name(all: &[String], place: usize) -> &str {
    all.get(place).map_or("", String::as_str)
}

/// An open file of requests.
pub struct RequestWriter {
    path: PathBuf,
    sender: Sender<RequestBatch>,
    writer: JoinHandle<io::Result<()>>,
}

/// The names that appear in the rows.
pub struct RowNames {
    /// The names of the servers.
    pub servers: Vec<String>,
    /// The names of the requests.
    pub requests: Vec<String>,
}

#[derive(Serialize)]
struct RequestLine<'a> {
    server: &'a str,
    turn: u32,
    request: &'a str,
    due: i64,
    sent: i64,
    done: i64,
    status: Option<u16>,
    bytes: u64,
    result: &'static str,
}

impl RequestWriter {
    /// Creates the file, and starts to write to it.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn begin(path: &Path, form: RequestFormat, names: RowNames) -> Result<RequestWriter, Fault> {
        let file = File::create(path).map_err(|error| {
            Fault::usage(format!("cannot write ‘{}’: {error}; name another file", path.display()))
        })?;
        let (sender, receiver) = channel::<RequestBatch>();
        let writer = thread::spawn(move || {
            let mut file = BufWriter::new(file);
            if form == RequestFormat::Csv {
                file.write_all(b"server,turn,request,due,sent,done,status,bytes,result\n")?;
            }
            for batch in receiver {
                for request in &batch.requests {
                    write(&mut file, form, &names, &batch, request)?;
                }
            }
            file.flush()
        });
        Ok(RequestWriter { path: path.to_owned(), sender, writer })
    }

    /// Returns the receiver of the requests of one turn of a server.
    pub fn receiver(&self, server: usize, turn: u32) -> RequestReceiver {
        RequestReceiver { server, turn, sender: self.sender.clone() }
    }

    /// Writes the rest of the file, and closes it.
    ///
    /// # Errors
    /// Some requests could not be written.
    pub fn end(self) -> Result<(), Fault> {
        drop(self.sender);
        let written = self.writer.join().unwrap_or_else(|_| Err(io::Error::other("its writer failed")));
        written.map_err(|error| {
            Fault::usage(format!(
                "cannot write ‘{}’: {error}; make room, or name another file",
                self.path.display()
            ))
        })
    }
}

fn write(
    file: &mut impl Write,
    form: RequestFormat,
    names: &RowNames,
    batch: &RequestBatch,
    request: &EachRequest,
) -> io::Result<()> {
    let line = RequestLine {
        server: name(&names.servers, batch.server),
        turn: batch.turn,
        request: name(&names.requests, request.request as usize),
        due: request.due,
        sent: request.sent,
        done: request.done,
        status: request.status,
        bytes: request.bytes,
        result: request.failure.map_or("ok", |failure| failure.name()),
    };
    if form == RequestFormat::JsonLines {
        serde_json::to_writer(&mut *file, &line)?;
        return file.write_all(b"\n");
    }
    let status = line.status.map_or(String::new(), |status| status.to_string());
    writeln!(
        file,
        "{},{},{},{},{},{},{status},{},{}",
        quoted(line.server),
        line.turn,
        quoted(line.request),
        line.due,
        line.sent,
        line.done,
        line.bytes,
        line.result
    )
}
