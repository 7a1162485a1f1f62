//! `scruple history` of repositories with branches and merges.

use crate::repository::Repository;
use crate::scripted_readings;
use crate::support::{Answer, Place};
use serde_json::Value;

/// A repository whose program has several parts. Each commit changes one part, so that no two versions have the same
/// binary.
struct Parts<'a> {
    repository: &'a Repository,
    next: std::cell::Cell<u32>,
}

impl<'a> Parts<'a> {
    const COUNT: u32 = 14;

    fn begin(repository: &'a Repository) -> Parts<'a> {
        let parts = Parts { repository, next: 1.into() };
        let includes: String = (0..Self::COUNT).map(|part| format!("#include \"part{part}.h\"\n")).collect();
        let used: String = (0..Self::COUNT).map(|part| format!("s += PART{part};\n")).collect();
        let text = format!(
            "#include <stdlib.h>\n#include \"size.h\"\n{includes}int main(void) {{\nvolatile unsigned long s = 0;\n{used}\
             void *volatile p = malloc(BYTES);\np = p;\nreturn 0;\n}}\n"
        );
        repository.write(".gitignore", "app\n");
        repository.write("app.c", &text);
        repository.write("size.h", "#define BYTES 1000\n");
        (0..Self::COUNT).for_each(|part| parts.write(part, 0));
        repository.commit("the beginning");
        parts
    }

    fn write(&self, part: u32, value: u32) {
        self.repository.write(&format!("part{part}.h"), &format!("#define PART{part} {value}\n"));
    }

    /// Commits a change of one part on the current branch.
    fn commit(&self, part: u32, title: &str) -> String {
        self.write(part, self.next.replace(self.next.get() + 1));
        self.repository.commit(title)
    }

    fn on(&self, branch: &str) {
        self.repository.git(&["checkout", "--quiet", branch]);
    }

    fn branch(&self, branch: &str) {
        self.repository.git(&["checkout", "--quiet", "-b", branch]);
    }

    fn merge(&self, branches: &[&str]) {
        let words = ["merge", "--quiet", "--no-ff", "--no-edit"];
        self.repository.git(&[&words[..], branches].concat());
    }
}

/// Commits ten merged branches: two are merged criss-cross, and three in one octopus merge. Returns the commit, on a
/// criss-cross branch, from which on the program allocates more.
fn with_merges(repository: &Repository) -> String {
    let parts = Parts::begin(repository);
    parts.commit(0, "on main");
    // Four branches are merged one by one, while main gets commits of its own.
    for branch in 1..=4 {
        parts.branch(&format!("branch{branch}"));
        parts.commit(branch, &format!("branch {branch}"));
        parts.commit(branch, &format!("branch {branch} goes on"));
        parts.on("main");
        parts.commit(0, &format!("main beside branch {branch}"));
    }
    ["branch3", "branch1", "branch4", "branch2"].iter().for_each(|branch| parts.merge(&[branch]));
    // Branches 5 and 6 are merged into each other before they are merged into main.
    parts.branch("branch5");
    parts.commit(5, "branch 5");
    parts.on("main");
    parts.branch("branch6");
    parts.commit(6, "branch 6");
    repository.write("size.h", "#define BYTES 1500\n");
    let planted = parts.commit(6, "allocates more");
    repository.git(&["tag", "six", "branch6"]);
    parts.merge(&["branch5"]);
    parts.on("branch5");
    parts.merge(&["six"]);
    parts.commit(5, "branch 5 goes on");
    parts.on("main");
    parts.commit(0, "main beside both");
    parts.merge(&["branch5"]);
    parts.merge(&["branch6"]);
    // Branches 7 to 9 are merged by one octopus merge. Branches 7, 8 and 10 begin before the change.
    for branch in 7..=9 {
        repository.git(&[
            "checkout",
            "--quiet",
            "-b",
            &format!("branch{branch}"),
            if branch == 9 { "main" } else { "branch4" },
        ]);
        parts.commit(branch, &format!("branch {branch}"));
    }
    parts.on("main");
    parts.merge(&["branch7", "branch8", "branch9"]);
    repository.git(&["checkout", "--quiet", "-b", "branch10", "branch2"]);
    parts.commit(10, "branch 10");
    parts.on("main");
    parts.merge(&["branch10"]);
    parts.commit(0, "the end");
    planted
}

/// The changes of all series: the title of the version and the metric.
fn named(answer: &Answer) -> Vec<(String, String)> {
    let json = answer.json();
    let title = |at: &Value| {
        let at = at.as_u64().expect("an index") as usize;
        json["history"]["versions"][at]["title"].as_str().expect("a title").to_owned()
    };
    let series = json["series"].as_array().expect("series").iter();
    let changes = series.flat_map(|one| {
        let metric = one["metric"].as_str().expect("a metric").to_owned();
        let all = one["changes"].as_array().expect("changes").iter();
        all.map(|change| (title(&change["at"]), metric.clone())).collect::<Vec<_>>()
    });
    changes.collect()
}

#[test]
fn of_ten_merged_branches_the_commit_that_allocates_more_is_named_and_nothing_else() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    with_merges(&repository);
    let answer = place.history(&["--rounds", "2", "--all", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let json = answer.json();
    let versions = json["history"]["versions"].as_array().expect("versions");
    // Two merges of the same two commits have the same binary, so that `same-binary` is a valid state.
    let weighed = |version: &Value| version["state"] == "built" || version["state"] == "same-binary";
    assert!(versions.iter().all(weighed), "{versions:#?}");
    let merges =
        versions.iter().filter(|version| version["parents"].as_array().is_some_and(|all| all.len() > 1));
    assert_eq!(merges.count(), 10);
    let mut named = named(&answer);
    named.retain(|(_, metric)| metric != "build.bytes");
    let change = |metric: &str| ("allocates more".to_owned(), metric.to_owned());
    assert!(named.contains(&change("malloc.bytes")), "{named:?}");
    assert!(named.iter().all(|(title, _)| title == "allocates more"), "{named:?}");
    let events = json["events"].as_array().expect("events").iter();
    let events: Vec<&Value> =
        events.filter(|event| event["set"].as_array().is_some_and(|set| set.len() == 1)).collect();
    assert_eq!(events.len(), 1, "{events:?}");
}

#[test]
fn a_slower_commit_on_a_branch_is_found_among_ten_merged_ones_by_looking_closer() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let planted = with_merges(&repository);
    let log = repository.git(&["log", "--format=%H"]);
    let slow = repository.git(&["log", "--format=%H", "--ancestry-path", &format!("{planted}..main")]);
    let is_slow = |commit: &str| commit == planted || slow.lines().any(|other| other == commit);
    let names: Vec<String> = log.lines().map(|commit| format!("./app @{}", &commit[..10])).collect();
    let arm = |(seed, commit): (usize, &str)| {
        scripted_readings::arm(if is_slow(commit) { 1.3 } else { 1.0 }, seed as u64)
    };
    let arms: Vec<(&str, scripted_readings::Arm)> =
        names.iter().map(String::as_str).zip(log.lines().enumerate().map(arm)).collect();
    place.script(&arms);
    for how in [&["--all", "--rounds", "10"][..], &["--adaptive"]] {
        let words = ["--scripted", "script.json", "--time-only", "--json", "--metrics", "time.cpu,time.wall"];
        let answer = place.history(&[how, &words].concat());
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        let mut named = named(&answer);
        named.retain(|(_, metric)| metric.starts_with("time."));
        assert!(
            !named.is_empty() && named.iter().all(|(title, _)| title == "allocates more"),
            "{how:?}: {named:?}"
        );
    }
}

#[test]
fn a_changed_output_is_attributed_to_the_commit_that_changes_it() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_program("the beginning", 10, 100, "puts(\"a\");");
    repository.git(&["checkout", "--quiet", "-b", "side"]);
    repository.write("notes", "of a branch\n");
    repository.commit("a branch");
    repository.git(&["checkout", "--quiet", "main"]);
    repository.commit_program("prints more", 10, 100, "puts(\"b\");");
    repository.git(&["merge", "--quiet", "--no-ff", "--no-edit", "-m", "the merge", "side"]);
    repository.write("notes", "of the end\n");
    repository.commit("the end");
    let answer = place.history(&["--rounds", "1", "--all", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let recorded = place.recorded();
    let commit = recorded.version("prints more")["commit"].as_str();
    let commit = commit.and_then(|commit| commit.get(..10)).expect("an id").to_owned();
    let json = answer.json();
    let remark =
        json["warnings"].as_array().expect("warnings").iter().find(|one| one["code"] == "outputs-differ");
    let remark = remark.and_then(|one| one["text"].as_str()).expect("a remark");
    assert!(remark.starts_with(&format!("the output changes at {commit}: ")), "{remark}");
    let apart = place.history(&["--rounds", "1", "--all", "--json", "--same-output"]);
    assert!(!apart.stdout.contains("outputs-differ"), "{}", apart.exchange());
}

/// The range begins after the slower commit, but has a branch that forked before it.
#[test]
fn a_merge_is_not_blamed_for_what_came_before_the_range() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let parts = Parts::begin(&repository);
    parts.branch("side");
    parts.commit(0, "on a branch");
    parts.on("main");
    repository.write("size.h", "#define BYTES 2000\n");
    let larger = repository.commit("allocates more");
    parts.merge(&["side"]);
    parts.commit(1, "after the merge");
    for (range, selection, expected) in [
        (format!("{larger}..HEAD"), &["--all"][..], false),
        (format!("{larger}..HEAD"), &["--every", "1"], false),
        ("HEAD".to_owned(), &["--all"], true),
    ] {
        let mut words = vec![range.as_str(), "--rounds", "1", "--metrics", "malloc.bytes", "--json"];
        words.extend(selection);
        let answer = place.history(&words);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        let named: Vec<(String, String)> = named(&answer);
        let blamed = named.iter().filter(|(_, metric)| metric == "malloc.bytes").collect::<Vec<_>>();
        let right = blamed.iter().all(|(title, _)| title == "allocates more");
        assert!(right && blamed.is_empty() != expected, "{range} {selection:?}: {named:?}");
        if !expected {
            let follows = place.recorded().version("on a branch")["follows"].clone();
            assert_eq!(follows.as_array().map(Vec::len), Some(0), "{range}: {follows}");
        }
    }
}
