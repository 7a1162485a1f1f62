//! The gate in continuous integration: bash runs the scripts of `action.yml` and `ci/`, and a forge on this machine
//! records their requests.

use crate::programs::skip;
use crate::repository::Repository;
use crate::support::Place;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

const MARKER: &str = "<!-- scruple:check:default -->";

/// One request that the forge received.
#[derive(Clone, Debug, PartialEq)]
struct Asked {
    method: String,
    path: String,
    token: String,
    body: Value,
}

/// A forge that answers a list of comments with the given pages, and every other request with an empty object.
struct Forge {
    address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Forge {
    fn with(pages: Vec<Value>) -> Forge {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &pages, &heard);
            }
        });
        Forge { address, asked }
    }

    /// The requests that change something, which are all but GET.
    fn changes(&self) -> Vec<Asked> {
        let all = self.asked.lock().expect("no panic").clone();
        all.into_iter().filter(|one| one.method != "GET").collect()
    }
}

/// Records a request and only then answers it, so that the record exists once the client has the answer.
fn answer(stream: TcpStream, pages: &[Value], heard: &Mutex<Vec<Asked>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let header = |name: &str| {
        let found = lines.iter().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        });
        found.unwrap_or_default()
    };
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let mut words = lines.first()?.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let page = path.split("&page=").nth(1).and_then(|page| page.parse::<usize>().ok());
    let reply = match page {
        Some(page) => pages.get(page - 1).cloned().unwrap_or_else(|| json!([])),
        None if path.ends_with("/user") => json!({"id": 7}),
        None => json!({}),
    };
    let token = header("authorization") + &header("private-token");
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    heard.lock().expect("no panic").push(Asked { method, path, token, body });
    let reply = reply.to_string();
    let mut stream = stream;
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", reply.len());
    stream.write_all(format!("{head}{reply}").as_bytes()).ok()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root")
}

/// Runs a job's command line with bash in `folder`.
fn bash(line: &str, folder: &Path, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new("bash");
    command.args(["-c", line]).current_dir(folder).env("GATE_ACTION", root());
    command.envs(variables.iter().copied()).output().expect("bash starts")
}

/// Whether curl and jq, which the commenting script needs, are installed. Prints `skipped:` if not.
fn can_comment() -> bool {
    let there = |name: &str| Command::new(name).arg("--version").output().is_ok();
    let all = there("curl") && there("jq");
    if !all {
        skip("curl or jq is not installed");
    }
    all
}

/// The lines that the steps of the action run.
fn steps() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("action.yml")).expect("the action");
    text.lines().filter_map(|line| line.trim().strip_prefix("run: ")).map(str::to_owned).collect()
}

#[test]
fn a_pull_request_keeps_one_comment_and_no_other_comment_is_changed() {
    if !can_comment() {
        return;
    }
    let place = Place::new();
    let file = place.write("check.md", format!("{MARKER}\n### Gate kept \"quoted\"\n"));
    let of = |kind: &str, id: u32, body: &str| json!({"id": id, "user": {"type": kind}, "body": body});
    let mut first: Vec<Value> = (0..99).map(|id| of("User", id, "words")).collect();
    first.push(of("User", 99, &format!("{MARKER}\nsomebody's own")));
    let pages = vec![Value::Array(first), json!([of("Bot", 777, &format!("{MARKER}\nold"))])];
    let post = |forge: &Forge| {
        let variables = [
            ("GATE_TOKEN", "secret"),
            ("GATE_REPOSITORY", "owner/name"),
            ("GATE_PULL", "5"),
            ("GITHUB_API_URL", &forge.address),
            ("GATE_FILE", file.to_str().expect("a path")),
        ];
        let output = bash(&steps()[1], place.path(), &variables);
        assert!(output.status.success(), "{output:?}");
        forge.changes()
    };
    let body = json!({"body": format!("{MARKER}\n### Gate kept \"quoted\"\n")});
    let asked = |method: &str, path: &str| Asked {
        method: method.to_owned(),
        path: path.to_owned(),
        token: "Bearer secret".to_owned(),
        body: body.clone(),
    };
    assert_eq!(post(&Forge::with(pages)), [asked("PATCH", "/repos/owner/name/issues/comments/777")]);
    assert_eq!(post(&Forge::with(vec![])), [asked("POST", "/repos/owner/name/issues/5/comments")]);
}

#[test]
fn a_merge_request_keeps_one_note() {
    if !can_comment() {
        return;
    }
    let place = Place::new();
    let file = place.write("check.md", format!("{MARKER}\nnew\n"));
    let note =
        |author: u32, id: u32| json!({"id": id, "author": {"id": author}, "body": format!("{MARKER}\nold")});
    for (pages, method, path) in [
        (vec![json!([note(3, 30), note(7, 70)])], "PUT", "/projects/1/merge_requests/2/notes/70"),
        (vec![json!([note(3, 30)])], "POST", "/projects/1/merge_requests/2/notes"),
    ] {
        let forge = Forge::with(pages);
        let variables = [
            ("SCRUPLE_TOKEN", "secret"),
            ("CI_API_V4_URL", forge.address.as_str()),
            ("CI_PROJECT_ID", "1"),
            ("CI_MERGE_REQUEST_IID", "2"),
        ];
        let line = format!("bash \"$GATE_ACTION/ci/comment.sh\" gitlab {}", file.display());
        let output = bash(&line, place.path(), &variables);
        assert!(output.status.success(), "{output:?}");
        let changes = forge.changes();
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert_eq!((changes[0].method.as_str(), changes[0].path.as_str()), (method, path));
        assert_eq!(
            (changes[0].token.as_str(), &changes[0].body["body"]),
            ("secret", &json!(format!("{MARKER}\nnew\n")))
        );
    }
    let other = place.write("other.md", "no marker\n");
    let line = format!("bash \"$GATE_ACTION/ci/comment.sh\" gitlab {}", other.display());
    assert_eq!(bash(&line, place.path(), &[]).status.code(), Some(2));
}

/// Makes a repository `origin` with a program and a branch `topic`, which allocates more. Returns the repository and
/// the commit of its main branch.
fn origin(place: &Place) -> (Repository, String) {
    let repository = Repository::new(place, "origin");
    repository.write(
        "scruple.toml",
        "[[command]]\nname = \"app\"\nrun = \"./app\"\n[build]\nsteps = [\"cc -O1 -o app app.c\"]\nartifacts = [\"app\"]\n",
    );
    repository.commit_allocations([1000]);
    let base = repository.git(&["rev-parse", "HEAD"]);
    repository.git(&["checkout", "--quiet", "-b", "topic"]);
    repository.commit_program("more", 10, 1001, "");
    (repository, base)
}

#[test]
fn a_job_of_a_shallow_clone_weighs_and_ends_as_configured() {
    let place = Place::new();
    let (repository, base) = origin(&place);
    let clone = place.file("clone");
    let url = format!("file://{}", place.file("origin").display());
    let words =
        ["clone", "--quiet", "--depth", "1", "--branch", "topic", &url, clone.to_str().expect("a path")];
    repository.git(&words);
    let (output, summary) = (place.write("output", ""), place.write("summary", ""));
    let program = env!("CARGO_BIN_EXE_scruple").to_owned();
    for (fail_on, code) in [("exceeded", 1), ("never", 0)] {
        let variables = [
            ("GATE_SCRUPLE", program.as_str()),
            ("GATE_BASE", base.as_str()),
            ("GATE_METRICS", "malloc.bytes"),
            // Time does not decide here, so that a wide margin saves blocks.
            ("GATE_MARGIN", "50%"),
            ("GATE_FOLDER", "results"),
            ("GATE_FAIL_ON", fail_on),
            ("GITHUB_OUTPUT", output.to_str().expect("a path")),
            ("GITHUB_STEP_SUMMARY", summary.to_str().expect("a path")),
            ("HOME", place.path().to_str().expect("a path")),
            ("XDG_CACHE_HOME", place.path().to_str().expect("a path")),
        ];
        let ran = bash(&steps()[0], &clone, &variables);
        assert_eq!(ran.status.code(), Some(code), "{ran:?}");
    }
    // An error is found before anything is weighed, or leaves no folder for the steps that follow.
    for (variable, text, error) in [
        ("GATE_FAIL_ON", "nevr", "fail-on is ‘nevr’: it may be exceeded, unknown or never"),
        ("GATE_BASE", "nope", "there is no revision ‘nope’"),
    ] {
        let failed = place.write("failed", "");
        let variables = [
            ("GATE_SCRUPLE", program.as_str()),
            ("GATE_FOLDER", "none"),
            ("GITHUB_OUTPUT", failed.to_str().expect("a path")),
            ("HOME", place.path().to_str().expect("a path")),
            (variable, text),
        ];
        let ran = bash(&steps()[0], &clone, &variables);
        assert_eq!(ran.status.code(), Some(2), "{ran:?}");
        assert!(String::from_utf8_lossy(&ran.stderr).contains(error), "{ran:?}");
        assert!(!place.read("failed").contains("folder"), "{}", place.read("failed"));
    }
    assert!(place.read("output").starts_with("exit-code=1\nfolder=results\n"), "{}", place.read("output"));
    assert!(place.read("summary").contains("1 regression"), "{}", place.read("summary"));
    for ending in ["md", "json", "xml", "sarif", "svg"] {
        assert!(clone.join(format!("results/scruple.{ending}")).exists(), "{ending}");
    }
    place.assert_no_processes();
}

/// The variables of the job for GitLab, and the lines of its `script` and its `after_script`.
fn gitlab_job() -> (Vec<(String, String)>, Vec<String>, Vec<String>) {
    let text = std::fs::read_to_string(root().join("ci/gitlab.yml")).expect("the job");
    let (mut variables, mut script, mut after) = (Vec::new(), Vec::new(), Vec::new());
    let mut part = "";
    for line in text.lines() {
        match (part, line.trim().strip_prefix("- "), line.trim().split_once(": ")) {
            _ if line.starts_with("  ") && !line.starts_with("   ") => part = line.trim(),
            ("variables:", _, Some((name, value))) => variables.push((name.to_owned(), value.to_owned())),
            ("script:", Some(line), _) => script.push(line.to_owned()),
            ("after_script:", Some(line), _) => after.push(line.trim_matches('\'').to_owned()),
            _ => {}
        }
    }
    (variables, script, after)
}

#[test]
fn the_job_of_a_merge_request_weighs_as_written_and_leaves_its_note() {
    if !can_comment() {
        return;
    }
    let place = Place::new();
    let (repository, base) = origin(&place);
    let clone = place.file("clone");
    let url = format!("file://{}", place.file("origin").display());
    repository.git(&["clone", "--quiet", "--branch", "topic", &url, clone.to_str().expect("a path")]);
    let programs = place.file("programs");
    std::fs::create_dir(&programs).expect("a folder");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_scruple"), programs.join("scruple")).expect("a link");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let forge = Forge::with(vec![]);
    let (variables, script, after) = gitlab_job();
    assert!(!script.is_empty() && !after.is_empty() && !variables.is_empty(), "the job has another form");
    let here = root();
    let of_job = |(name, value): &(String, String)| match name.as_str() {
        // The job is told where the clone of Scruple is.
        "SCRUPLE_CLONE" => format!("export SCRUPLE_CLONE='{}'", here.display()),
        _ => format!("export {name}=\"{value}\""),
    };
    let exports: Vec<String> = variables.iter().map(of_job).collect();
    let run = |lines: &[String]| {
        let line = format!("set -e\n{}\n{}", exports.join("\n"), lines.join("\n"));
        bash(
            &line,
            &clone,
            &[
                ("CI_MERGE_REQUEST_DIFF_BASE_SHA", base.as_str()),
                ("CI_API_V4_URL", forge.address.as_str()),
                ("CI_PROJECT_ID", "1"),
                ("CI_MERGE_REQUEST_IID", "2"),
                ("SCRUPLE_TOKEN", "secret"),
                ("PATH", path.as_str()),
                ("HOME", place.path().to_str().expect("a path")),
                ("XDG_CACHE_HOME", place.path().to_str().expect("a path")),
            ],
        )
    };
    let weighed = run(&script);
    assert_eq!(weighed.status.code(), Some(1), "{weighed:?}");
    let noted = run(&after);
    assert!(noted.status.success(), "{noted:?}");
    let changes = forge.changes();
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(
        (changes[0].method.as_str(), changes[0].path.as_str()),
        ("POST", "/projects/1/merge_requests/2/notes")
    );
    let body = changes[0].body["body"].as_str().unwrap_or_default();
    assert!(
        body.starts_with(MARKER) && body.contains("Gate exceeded") && body.contains("malloc bytes"),
        "{body}"
    );
    assert!(body.contains(&format!("`{}` →", &base[..10])), "a commit by the beginning of its id: {body}");
    assert!(clone.join("scruple-results/scruple.xml").exists(), "the report that the job names");
    place.assert_no_processes();
}
