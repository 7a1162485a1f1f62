//! A history that was killed at any moment continues where it was.

use crate::history::benches::commit_cases;
use crate::programs::eventually;
use crate::repository::{BUILD, Repository, blocks};
use crate::support::Place;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// C statements that append one byte to the file named by the first argument when the program runs.
const MARK: &str = "FILE *log = fopen(argv[1], \"a\");\nif (!log) return 1;\nputc('x', log);\nfclose(log);";

fn kills() -> u64 {
    std::env::var("SCRUPLE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(10)
}

#[test]
fn killed_again_and_again_a_history_loses_at_most_the_launch_under_way() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    (0..12).for_each(|index| {
        repository.commit_program(&format!("version {index}"), 1000, 100 + index, MARK);
    });
    repository.write("README", "documents");
    repository.commit("documents");
    let log = place.file("launches").display().to_string();
    let step = ["--build", "sleep 0.01"];
    let words = ["history", "--repo", "repo", "--time-only", "--rounds", "100000", "--seed", "7"];
    let words: Vec<&str> =
        words.iter().chain(&BUILD).chain(&step).chain(&["--", "./app", &log]).copied().collect();
    let mut moment = 1_u64;
    for kill in 0..kills() {
        moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut command = place.command(&words);
        let output = place.create("output");
        let mut child = command.stdout(Stdio::null()).stderr(output).spawn().expect("scruple runs");
        // A third of the kills come soon after the start, while versions are built. The others come once launches are
        // under way.
        let before = place.length("launches");
        if kill % 3 != 0 {
            let mut ended = None;
            let begun = eventually(|| {
                ended = child.try_wait().expect("a child");
                place.length("launches") > before || ended.is_some()
            });
            assert!(begun && ended.is_none(), "nothing is weighed: {ended:?}, {}", place.read("output"));
        }
        std::thread::sleep(Duration::from_micros((moment >> 33) % 400_000));
        child.kill().expect("a kill");
        child.wait().expect("an end");
        place.assert_no_processes();
        if place.file("store.db").exists() && place.run(["history", "status", "--repo", "repo"]).code == 0 {
            let (kept, launched) = (place.recorded().count("time.wall"), place.length("launches"));
            // The launch that was killed may have written its byte without its reading being stored.
            assert!(kept <= launched && launched <= kept + kill + 1, "{launched} launches, {kept} kept");
        }
    }
    let fewer = words.iter().map(|word| if *word == "100000" { "5" } else { word });
    let answer = place.run(fewer);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let recorded = place.recorded();
    assert_eq!(recorded.states()[..12], ["built"; 12]);
    assert_eq!(recorded.states()[12], "same-binary");
    (0..12).for_each(|index| assert!(recorded.readings(&format!("version {index}"), "time.wall").len() >= 5));
    // Block numbers that strictly rise show that no reading was kept twice.
    for arm in recorded.arms() {
        let blocks = blocks(arm);
        assert!(blocks.windows(2).all(|pair| pair[0] < pair[1]), "{blocks:?}");
    }
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(repository.git(&["status", "--porcelain"]), "");
    place.assert_no_processes();
    let work = std::fs::read_dir(place.work()).expect("a folder").flatten();
    let left: Vec<_> =
        work.filter(|entry| entry.file_name().to_string_lossy().starts_with("work-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn leftovers_of_a_killed_git_do_not_prevent_a_build() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let _ = repository.commit_allocations([1, 2]);
    assert_eq!(place.history(&["--rounds", "2", "--time-only"]).code, 0);
    let key = place.work().join("history").read_dir().expect("a folder").flatten().next().expect("builds");
    let git = key.path().join("tree/.git");
    let locks = ["HEAD.lock", "config.lock", "index.lock", "refs/heads/none.lock"];
    let hinder = || locks.iter().for_each(|lock| std::fs::write(git.join(lock), "").expect("a lock"));
    // The first iteration simulates a kill during a checkout, the second one while the repository was made.
    for half_made in [false, true] {
        hinder();
        if half_made {
            std::fs::remove_file(git.join("objects/info/alternates")).expect("a file");
        }
        let step = if half_made { "true half" } else { "true whole" };
        let answer = place.history(&["--rounds", "2", "--time-only", "--build", step]);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        assert_eq!(place.recorded().states(), ["built"; 2]);
        assert!(locks.iter().all(|lock| !git.join(lock).exists()));
    }
}

#[test]
fn a_killed_history_of_cases_goes_on_with_whole_processes() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    for cost in [100, 120] {
        let cases = [format!(r#"{{"name":"one","cost":{cost}}}"#), r#"{"name":"two","cost":9}"#.to_owned()];
        let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
        commit_cases(&place, &repository, &format!("{cost}"), &cases);
    }
    let take = |rounds: &'static str| {
        let words = [
            "history",
            "--repo",
            "repo",
            "--time-only",
            "--seed",
            "7",
            "--build",
            "true",
            "--rounds",
            rounds,
        ];
        words.into_iter().chain(["--bench", "--", "./bench"])
    };
    let mut moment = 1_u64;
    for _ in 0..kills() / 2 {
        moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut command = place.command(take("1000"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("scruple runs");
        std::thread::sleep(Duration::from_micros((moment >> 33) % 1_000_000));
        child.kill().expect("a kill");
        child.wait().expect("an end");
        place.assert_no_processes();
    }
    let answer = place.run(take("4"));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let recorded = place.recorded();
    let cases = recorded.arms().iter().filter(|arm| arm["subject"]["kind"] == "case");
    let cases: Vec<Vec<u64>> = cases.map(blocks).collect();
    assert_eq!(cases.len(), 4);
    assert!(cases.iter().all(|blocks| blocks.len() >= 4 && blocks.windows(2).all(|pair| pair[0] < pair[1])));
}

/// Prints the overhead of a version beyond its build and launches, and the time of a history with nothing left to do.
#[test]
fn the_overhead_of_a_history_can_be_seen() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.write("app.sh", "#!/bin/sh\ntrue\n");
    repository.git(&["add", "--all"]);
    repository.git(&["update-index", "--chmod=+x", "app.sh"]);
    let count: u32 = std::env::var("SCRUPLE_COMMITS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    (0..count).for_each(|index| {
        repository.write("app.sh", &format!("#!/bin/sh\n: {index}\n"));
        repository.git(&["update-index", "--add", "--chmod=+x", "app.sh"]);
        repository.commit(&format!("version {index}"));
    });
    let words = ["history", "--repo", "repo", "--all", "--rounds", "2", "--time-only", "--build", "true"];
    let words: Vec<&str> =
        words.iter().chain(&["--artifact", "app.sh", "--", "sh", "app.sh"]).copied().collect();
    let timed = || {
        let began = Instant::now();
        let answer = place.run(&words);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        began.elapsed()
    };
    let (first, again) = (timed(), timed());
    let recorded = place.recorded();
    assert_eq!(recorded.states(), vec!["built"; count as usize]);
    let total = |metric: &str| -> f64 {
        (0..count).flat_map(|index| recorded.readings(&format!("version {index}"), metric)).sum::<f64>() / 1e9
    };
    let used = total("build.time") + total("time.wall");
    let text = format!(
        "{count} commits: {:.1} ms each beside building and running; nothing to do: {:.0} ms",
        (first.as_secs_f64() - used) * 1000.0 / f64::from(count),
        again.as_secs_f64() * 1000.0
    );
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}
