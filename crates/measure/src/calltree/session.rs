//! One launch under Valgrind: its command line, its environment, and its counts.

use super::choose_tool::{ChosenTool, ValgrindTool};
use super::flat;
use crate::callgrind;
use crate::launcher::Launch;
use scruple_code::{CalltreeError, Profiles, read_all};
use scruple_stats::sorting;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The number of threads that a program may have at one time. Valgrind's default is 500; each takes 7 kB in advance.
const MOST_THREADS: u32 = 4096;

/// What is counted, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// What is counted.
    pub counts: CountDetail,
    /// Whether sources of variation between runs are removed: the random bytes that the kernel gives to the program are
    /// the same in each run, the monitor of Go's runtime seldom interrupts goroutines, and V8 starts no threads in
    /// Node.js (the call tree only).
    pub steady: bool,
    /// Whether other processes may reset, write and label counts with `vgdb` while the program runs.
    pub control: bool,
    /// When the first of several launches began. The profile notes whether the program finds files that changed between
    /// that time and this launch (the call tree only).
    pub first_began: Option<SystemTime>,
}

/// What the call tree counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountDetail {
    /// Instructions, calls and allocations by context.
    #[default]
    Tree,
    /// The total number of instructions, which is the cheapest.
    Total,
    /// Allocations and live blocks by context and place of the call.
    Sites,
}

/// A launch that is counted. Dropping the session removes its files.
#[derive(Debug)]
pub struct CalltreeSession {
    counter: ChosenTool,
    settings: Settings,
    folder: PathBuf,
}

/// The counts of one launch.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchCounts {
    /// The tool that counted.
    pub by: ValgrindTool,
    /// The number of instructions of all processes.
    pub total: u64,
    /// The call trees; what callgrind and cachegrind counted are trees without calling contexts.
    pub profiles: Profiles,
    /// The counts by function, if callgrind counted.
    pub callgrind: Option<callgrind::CallgrindProfile>,
}

impl CalltreeSession {
    /// Creates a session. Its files are in a new folder inside `below`.
    ///
    /// # Errors
    /// Fails if that folder cannot be made.
    pub fn start(
        counter: &ChosenTool,
        settings: Settings,
        below: &Path,
    ) -> Result<CalltreeSession, CalltreeError> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // The path always has the same length, because Valgrind passes it on among its arguments.
        let folder = below.join(format!("counted-{:07}-{number:06}", std::process::id()));
        let made = std::path::absolute(&folder).and_then(|path| fs::create_dir(&path).map(|()| path));
        let folder = made.map_err(|source| CalltreeError::Folder { path: folder, source })?;
        // Others may write into it, because the program may change its user. They cannot reach it by its path, but
        // processes of the program keep it open.
        let open = |folder: &Path| {
            let private = fs::Permissions::from_mode(0o700);
            fs::set_permissions(folder, private)?;
            fs::create_dir(folder.join("profiles"))?;
            fs::set_permissions(folder.join("profiles"), fs::Permissions::from_mode(0o733))
        };
        open(&folder).map_err(|source| CalltreeError::Folder { path: folder.clone(), source })?;
        Ok(CalltreeSession { counter: counter.clone(), settings, folder })
    }

    /// The beginning of the profiles' paths: each process appends its id and the number of the part.
    pub fn out(&self) -> PathBuf {
        self.folder.join("profiles/out")
    }

    /// The words to put before the program's path and arguments; the first word is the file to execute.
    pub fn words(&self) -> Vec<OsString> {
        let with = |option: &str, name: &str| {
            let mut word = OsString::from(option);
            word.push(self.folder.join(name));
            word
        };
        let mut words: Vec<OsString> = vec![self.counter.launcher.clone().into()];
        words.extend(["-q", "--trace-children=yes", "--child-silent-after-fork=yes"].map(Into::into));
        words.push(format!("--max-threads={MOST_THREADS}").into());
        words.push(with("--log-file=", "log.%p"));
        words.push(if self.settings.control { "--vgdb=yes" } else { "--vgdb=no" }.into());
        if self.settings.control {
            words.push(with("--vgdb-prefix=", "vgdb"));
        }
        match self.counter.kind {
            ValgrindTool::Calltree => {
                words.extend(["--tool=calltree".into(), with("--out=", "profiles/out")]);
                let flags = [
                    ("--total=yes", self.settings.counts == CountDetail::Total),
                    ("--sites=yes", self.settings.counts == CountDetail::Sites),
                    ("--steady=yes", self.settings.steady),
                ];
                words.extend(flags.iter().filter(|(_, wanted)| *wanted).map(|(flag, _)| (*flag).into()));
                if let Some(first) = self.settings.first_began {
                    words.push(format!("--first-began={}", nanoseconds(first)).into());
                    words.push(format!("--this-began={}", nanoseconds(SystemTime::now())).into());
                }
            }
            ValgrindTool::Callgrind => {
                // Names as they are in the files, and the addresses of instructions, show whether code is the same.
                words.extend(["--tool=callgrind", "--demangle=no", "--show-below-main=yes"].map(Into::into));
                if self.settings.counts != CountDetail::Total {
                    words.extend(["--dump-instr=yes", "--compress-pos=no"].map(Into::into));
                }
                words.push(with("--callgrind-out-file=", "out.%p"));
            }
            ValgrindTool::Cachegrind => {
                words.extend(["--tool=cachegrind", "--cache-sim=no", "--demangle=no"].map(Into::into));
                words.push(with("--cachegrind-out-file=", "out.%p"));
            }
        }
        words
    }

    /// The variable to set in the program's environment: where Valgrind finds our tool.
    pub fn environment(&self) -> Option<(OsString, OsString)> {
        let library = self.counter.library.as_ref()?;
        Some(("VALGRIND_LIB".into(), library.clone().into()))
    }

    /// Changes a launch so that Valgrind runs its program.
    pub fn decorate(&self, launch: &mut Launch) {
        let mut words = self.words();
        let program = std::mem::replace(&mut launch.path, self.counter.launcher.clone());
        words.push(program.into());
        words.extend(launch.argv.drain(..).skip(1));
        launch.argv = words;
        // The user's own Valgrind settings would be added to these.
        launch.env.retain(|(name, _)| name != "VALGRIND_OPTS" && name != "VALGRIND_LIB");
        launch.options.writes_at_end = true;
        launch.env.extend(self.environment());
    }

    /// Sends an order to a process of this launch: `zero` resets its counts, `dump LABEL` writes them, `phase LABEL`
    /// begins a phase. The session must allow control. The process may be blocked in a system call meanwhile.
    ///
    /// # Errors
    /// Fails with the message of `vgdb`, which delivers the order.
    pub fn order(&self, process: i32, order: &str) -> Result<(), CalltreeError> {
        let mut prefix = OsString::from("--vgdb-prefix=");
        prefix.push(self.folder.join("vgdb"));
        let mut command = Command::new(self.counter.launcher.with_file_name("vgdb"));
        command.arg(prefix).arg(format!("--pid={process}")).arg("--wait=60").args(order.split(' '));
        let output = command.stdin(Stdio::null()).output();
        let output = output.map_err(|error| CalltreeError::Failed(format!("cannot start vgdb: {error}")))?;
        let said = String::from_utf8_lossy(&output.stdout);
        if ["zeroed", "dumped", "phase"].iter().any(|done| said.trim_start().starts_with(done)) {
            return Ok(());
        }
        let all = format!("{} {}", said.trim(), String::from_utf8_lossy(&output.stderr).trim());
        Err(CalltreeError::Failed(all.trim().escape_debug().to_string()))
    }

    /// Reads the counts after the program has ended.
    ///
    /// # Errors
    /// Fails if nothing was counted, or if counts are lost or damaged.
    pub fn read(&self) -> Result<LaunchCounts, CalltreeError> {
        if let Some(line) = self.failure() {
            return Err(CalltreeError::Failed(line));
        }
        let by = self.counter.kind;
        if by == ValgrindTool::Calltree {
            let profiles = read_all(&self.out())?;
            return Ok(LaunchCounts { by, total: profiles.total(), profiles, callgrind: None });
        }
        let files = self.files("out.");
        if files.is_empty() {
            return Err(CalltreeError::Nothing(by.name()));
        }
        let mut all = callgrind::CallgrindProfile::default();
        let mut profiles = Profiles::default();
        for path in files {
            let text =
                fs::read(&path).map_err(|source| CalltreeError::Folder { path: path.clone(), source })?;
            let text = String::from_utf8_lossy(&text);
            let profile =
                callgrind::parse(&text).map_err(|why| CalltreeError::Damaged { path: path.clone(), why })?;
            all.add(&profile);
            profiles.processes.push(flat::of(&profile, &text));
        }
        sorting::by_key(&mut profiles.processes, |process| process.process);
        let mut commands: Vec<&[String]> =
            profiles.processes.iter().map(|one| one.words.as_slice()).collect();
        sorting::ascending(&mut commands);
        if let Some(two) = commands.windows(2).find(|two| two[0] == two[1]) {
            let program = two[0].join(" ").escape_debug().to_string();
            return Err(CalltreeError::Forked { program, by: by.name() });
        }
        let callgrind = (by == ValgrindTool::Callgrind).then_some(all);
        Ok(LaunchCounts { by, total: profiles.total(), profiles, callgrind })
    }

    fn files(&self, beginning: &str) -> Vec<PathBuf> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let named = files.filter(|file| file.file_name().to_string_lossy().starts_with(beginning));
        named.map(|file| file.path()).collect()
    }

    /// The line in which Valgrind reports an internal error, or that it cannot run the program.
    pub(crate) fn failure(&self) -> Option<String> {
        let signs = [
            "Assertion",
            "the 'impossible' happened",
            "Fatal error",
            "unhandled instruction",
            "failed to start",
        ];
        for log in self.files("log.") {
            let text = fs::read(log).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let line = text.lines().find(|line| signs.iter().any(|sign| line.contains(sign)));
            if let Some(line) = line {
                return Some(line.trim().escape_debug().to_string());
            }
        }
        None
    }
}

/// A time in nanoseconds since 1970.
fn nanoseconds(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

impl Drop for CalltreeSession {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
