//! Opens the standard input, output and error of a measured program.

use crate::error_output::ErrorOutput;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::thread::JoinHandle;

/// The source of standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// The null device.
    #[default]
    Null,
    /// Scruple's own standard input.
    Inherit,
    /// A file, opened again for each launch.
    File(PathBuf),
    /// A file's contents through a pipe.
    Pipe(PathBuf),
}

/// The destination of standard output and error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// The null device.
    #[default]
    Null,
    /// Scruple's own standard output and error.
    Inherit,
    /// A file, truncated for each launch; standard error goes to the null device.
    File(PathBuf),
    /// A pipe that Scruple reads and discards; standard error goes to the null device.
    Pipe,
}

/// A summary of a stream that distinguishes outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// The hash of all bytes, by FNV-1a with 64 bits.
    pub hash: u64,
    /// The number of bytes.
    pub length: u64,
}

/// The captured streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// Standard output.
    pub stdout: Digest,
    /// Standard error.
    pub stderr: Digest,
}

/// The parts of discarded output that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputCapture {
    /// Nothing is kept.
    Nothing,
    /// The standard error is kept, shortened, for a message if the program fails.
    ErrorOutput,
    /// Digests of both streams are kept, and the standard error as above.
    Digests,
}

/// What was captured: digests if they were requested, and the lines of standard error to show.
pub(crate) type CapturedOutput = (Option<Captured>, String);

/// The digest of the standard error, and the lines of it to show.
type DigestAndLines = (Digest, String);

/// The three descriptors of a launch, and the threads that read the other ends of its pipes.
pub(crate) struct Streams {
    pub(crate) stdio: [OwnedFd; 3],
    ends: Ends,
}

enum Ends {
    None,
    Discarding,
    ErrorOutput(JoinHandle<io::Result<DigestAndLines>>),
    Capturing(JoinHandle<io::Result<Digest>>, JoinHandle<io::Result<DigestAndLines>>),
}

impl Streams {
    /// Opens the streams of a launch. `capture` says which discarded output is captured instead.
    pub(crate) fn open(input: &Input, output: &Output, capture: OutputCapture) -> io::Result<Streams> {
        let stdin = open_input(input)?;
        let discarded = matches!(output, Output::Null | Output::Pipe);
        if discarded && capture == OutputCapture::Digests {
            let (out_reader, out) = io::pipe()?;
            let (err_reader, err) = io::pipe()?;
            let ends = Ends::Capturing(
                in_thread(move || digest(out_reader, |_| ()))?,
                in_thread(move || digest_and_lines(err_reader))?,
            );
            return Ok(Streams { stdio: [stdin, out.into(), err.into()], ends });
        }
        // Standard output is the same as in the timing pass, because a program may choose its buffering by it.
        if *output == Output::Null && capture == OutputCapture::ErrorOutput {
            let (reader, writer) = io::pipe()?;
            let ends = Ends::ErrorOutput(in_thread(move || digest_and_lines(reader))?);
            return Ok(Streams { stdio: [stdin, null(true)?, writer.into()], ends });
        }
        let (stdout, stderr, ends): (OwnedFd, OwnedFd, Ends) = match output {
            Output::Null => (null(true)?, null(true)?, Ends::None),
            Output::Inherit => (dup(io::stdout())?, dup(io::stderr())?, Ends::None),
            Output::File(path) => {
                let file =
                    File::create(path).map_err(|error| named(error, "cannot write output to", path))?;
                (file.into(), null(true)?, Ends::None)
            }
            Output::Pipe => {
                let (mut reader, writer) = io::pipe()?;
                in_thread(move || io::copy(&mut reader, &mut io::sink()))?;
                (writer.into(), null(true)?, Ends::Discarding)
            }
        };
        Ok(Streams { stdio: [stdin, stdout, stderr], ends })
    }

    /// Separates the descriptors from the threads. The returned closure waits for the captured streams after the
    /// launch.
    pub(crate) fn split(self) -> ([OwnedFd; 3], impl FnOnce() -> CapturedOutput) {
        let Streams { stdio, ends } = self;
        (stdio, move || match ends {
            Ends::None | Ends::Discarding => (None, String::new()),
            Ends::ErrorOutput(err) => (None, carried(err).map_or(String::new(), |(_, lines)| lines)),
            Ends::Capturing(out, err) => match (carried(out), carried(err)) {
                (Some(stdout), Some((stderr, lines))) => (Some(Captured { stdout, stderr }), lines),
                // A stream that could not be read to its end cannot be compared.
                (_, err) => (None, err.map_or(String::new(), |(_, lines)| lines)),
            },
        })
    }
}

/// Starts a thread. Fails where the system allows this user no more of them.
fn in_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<JoinHandle<T>> {
    std::thread::Builder::new().spawn(work).map_err(|error| {
        let text = format!("cannot start a thread: {error}; allow more processes (ulimit -u), or end some");
        io::Error::new(error.kind(), text)
    })
}

fn carried<T>(end: JoinHandle<io::Result<T>>) -> Option<T> {
    end.join().ok()?.ok()
}

fn open_input(input: &Input) -> io::Result<OwnedFd> {
    match input {
        Input::Null => null(false),
        Input::Inherit => dup(io::stdin()),
        Input::File(path) => {
            Ok(File::open(path).map_err(|error| named(error, "cannot read input from", path))?.into())
        }
        Input::Pipe(path) => {
            let mut file = File::open(path).map_err(|error| named(error, "cannot read input from", path))?;
            let (reader, mut writer) = io::pipe()?;
            in_thread(move || {
                // A write error means that the program stopped reading, which is not an error.
                let _ = io::copy(&mut file, &mut writer).and_then(|_| writer.flush());
            })?;
            Ok(reader.into())
        }
    }
}

fn named(error: io::Error, what: &str, path: &std::path::Path) -> io::Error {
    io::Error::new(error.kind(), format!("{what} ‘{}’: {error}", path.display()))
}

fn null(write: bool) -> io::Result<OwnedFd> {
    Ok(OpenOptions::new().read(!write).write(write).open("/dev/null")?.into())
}

fn dup(stream: impl std::os::fd::AsFd) -> io::Result<OwnedFd> {
    stream.as_fd().try_clone_to_owned()
}

fn digest_and_lines(stream: impl Read) -> io::Result<DigestAndLines> {
    let mut kept = ErrorOutput::default();
    let digest = digest(stream, |bytes| kept.add(bytes))?;
    Ok((digest, kept.shown()))
}

/// Reads a stream to its end and hashes all of it, independently of the sizes of its pieces. Gives each piece to `keep`.
fn digest(mut stream: impl Read, mut keep: impl FnMut(&[u8])) -> io::Result<Digest> {
    let mut buffer = vec![0; 1 << 20];
    let mut digest = Digest { hash: 0xcbf2_9ce4_8422_2325, length: 0 };
    loop {
        let count = match stream.read(&mut buffer) {
            Ok(0) => return Ok(digest),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let bytes = &buffer[..count];
        for byte in bytes {
            digest.hash = (digest.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        digest.length += count as u64;
        keep(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_the_published_hash_of_what_was_read() {
        let (digest, lines) = digest_and_lines(&b"foobar"[..]).expect("bytes");
        assert_eq!(digest, Digest { hash: 0x85944171f73967e8, length: 6 });
        assert_eq!(lines, "\n    foobar");
    }

    #[test]
    fn the_beginning_and_the_end_of_a_long_stream_are_kept() {
        let long = format!("panic: nil map\n{}exit status 2\n", "x".repeat(9).repeat(500_000) + "\n");
        let (digest, lines) = digest_and_lines(long.as_bytes()).expect("bytes");
        assert_eq!(digest.length, long.len() as u64);
        assert!(lines.starts_with("\n    panic: nil map\n"), "{lines}");
        assert!(lines.ends_with("\n    exit status 2") && lines.len() < 2000, "{lines}");
    }

    /// Yields `left` bytes in pieces of at most `piece` bytes: all zeros, and a one at the end.
    struct Pieces {
        left: u64,
        piece: usize,
    }

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = (self.left as usize).min(self.piece).min(buffer.len());
            buffer[..count].fill(0);
            self.left -= count as u64;
            if let (0, Some(last)) = (self.left, buffer[..count].last_mut()) {
                *last = 1;
            }
            Ok(count)
        }
    }

    #[test]
    fn how_a_long_output_comes_in_pieces_does_not_matter_and_its_end_does() {
        let left = (65 << 20) + 12_345;
        let carried = |left, piece| digest(Pieces { left, piece }, |_| ()).expect("bytes");
        assert_eq!(carried(left, 1 << 20), carried(left, 65_521));
        assert_ne!(carried(left, 1 << 20).hash, carried(left - 1, 1 << 20).hash);
    }
}
