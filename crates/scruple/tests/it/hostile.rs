//! Untrusted input: names, labels, and the configuration of a repository by an unknown author.

use crate::repository::{BUILD, Repository};
use crate::support::Place;

#[test]
fn a_repository_runs_nothing_by_being_measured_in() {
    let place = Place::new();
    let repository = Repository::new(&place, "theirs");
    repository.write("data.bin", "one");
    repository.commit("data");
    let trap = |name: &str| {
        let seen = place.file(&format!("{name}-ran"));
        place.shell_script(name, &format!("touch {}; cat", seen.display()));
        (place.file(name).display().to_string(), seen)
    };
    let (monitor, monitored) = trap("monitor");
    let (filter, filtered) = trap("filter");
    repository.git(&["config", "core.fsmonitor", &monitor]);
    repository.git(&["config", "filter.trap.clean", &filter]);
    repository.write(".gitattributes", "*.bin filter=trap\n");
    repository.write("data.bin", "two");
    let mut command = place.command(["run", "--json", "--time-only", "-r", "1", "true"]);
    let answer = place.finish(command.current_dir(place.file("theirs")));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert_eq!(answer.json()["provenance"]["dirty"], true);
    assert!(!monitored.exists() && !filtered.exists(), "a program that the repository names has run");
}

#[test]
fn a_callers_variables_do_not_name_another_repository() {
    let place = Place::new();
    let (ours, theirs) = (Repository::new(&place, "ours"), Repository::new(&place, "theirs"));
    for (repository, text) in [(&ours, "one"), (&theirs, "two")] {
        repository.write("file", text);
        repository.commit(text);
    }
    let mut command = place.command(["run", "--json", "--time-only", "-r", "1", "true"]);
    command.current_dir(place.file("ours")).env("GIT_DIR", place.file("theirs/.git"));
    let answer = place.finish(&mut command);
    let commit = answer.json()["provenance"]["commit"].as_str().expect("a commit").to_owned();
    assert_eq!(commit, ours.git(&["rev-parse", "HEAD"]).trim());
}

#[test]
fn a_name_controls_neither_a_terminal_nor_the_direction_of_writing() {
    let place = Place::new();
    let name = "a\u{1b}]0;title\u{7}\u{202e}b\u{9b}31m";
    let words = ["run", "--color=always", "--time-only", "-r", "1", "-n", name, "true"];
    let text = place.run(words).stdout;
    for steering in ["\u{1b}]", "\u{7}", "\u{202e}", "\u{9b}"] {
        assert!(!text.contains(steering), "{text:?}");
    }
    assert!(text.contains("a�]0;title��b�31m"), "{text}");
}

#[test]
fn neither_a_title_nor_the_name_of_a_command_colours_the_text_of_a_history() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_program("title\t\u{1b}[31mred", 10, 10, "");
    let words = ["history", "--repo", "repo", "--color=always", "--rounds", "1", "-n", "name\u{1b}[31mred"];
    let answer = place.run(words.iter().chain(&BUILD).chain(&["--", "./app"]));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(answer.stdout.contains("name�[31mred"), "{}", answer.stdout);
    let status = place.run(["history", "status", "--repo", "repo", "--color=always"]).stdout;
    assert!(status.contains("title��[31mred"), "{status}");
    assert!(!(answer.stdout + &answer.stderr + &status).contains("\u{1b}[31mred"));
}

#[test]
fn a_label_can_be_found_and_shown() {
    let place = Place::new();
    for label in ["", "last", "last~2", "two\nlines", "\u{202e}"] {
        let answer = place.run(["run", "--time-only", "-r", "1", "--label", label, "true"]);
        assert_eq!(answer.code, 2, "{label:?}: {}", answer.exchange());
        assert!(answer.stderr.contains("give another --label"), "{}", answer.exchange());
    }
    let answer = place.run(["run", "--time-only", "-r", "1", "--label", "lasting", "true"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
}
