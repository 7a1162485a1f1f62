//! Which versions of a history are listed, and what happens to the others.

use crate::repository::Repository;
use crate::support::Place;

#[test]
fn a_listed_version_stands_in_for_one_with_the_same_binary_that_is_not_listed_any_more() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([100, 200]);
    repository.write("README", "documents");
    repository.commit("documents");
    let take = |words: &[&str]| {
        let answer = place.history(&[&["--rounds", "3"], words].concat());
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        (answer.stdout, place.recorded())
    };
    // The last version is built first, so that the middle one is recorded as having the same binary as the last.
    take(&["--commits", "HEAD~2,HEAD"]);
    let (_, recorded) = take(&[]);
    assert_eq!(recorded.states(), ["built", "same-binary", "built"]);
    let (report, recorded) = take(&["HEAD~1"]);
    assert_eq!(recorded.states(), ["built"; 2]);
    assert_eq!(recorded.readings("version 1", "malloc.bytes").first(), Some(&200.0));
    assert_eq!(recorded.readings("version 1", "time.wall").len(), 3);
    assert!(report.contains("2 versions: 2 weighed\n"), "{report}");
    // When both versions are listed again, only one of them is weighed.
    let (report, recorded) = take(&[]);
    assert_eq!(recorded.states(), ["built", "built", "same-binary"]);
    assert_eq!(recorded.version("documents")["same_as"], recorded.version("version 1")["commit"]);
    assert!(report.contains("3 versions: 2 weighed, 1 with the same binary as another\n"), "{report}");
}

#[test]
fn control_characters_in_a_message_or_a_name_hide_no_commit() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    for bytes in [100, 200] {
        repository.commit_program(&format!("a\u{1e}b\u{1}c\u{1f}{bytes}"), 10, bytes, "");
    }
    repository.git(&["commit", "--quiet", "--amend", "--no-edit", "--author", "A\u{1e}B <a@example.org>"]);
    repository.commit_program("last", 10, 300, "\n");
    assert_eq!(place.history(&["--rounds", "1", "--time-only"]).code, 0);
    assert_eq!(place.recorded().states(), ["built"; 3]);
}

#[test]
fn a_revision_may_contain_spaces() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    ["more work", "less work"].iter().for_each(|title| drop(repository.commit_program(title, 10, 100, "")));
    let titles = |words: &[&str]| -> Vec<String> {
        let answer = place.history(&[words, &["--rounds", "1", "--time-only"]].concat());
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        let recorded = place.recorded();
        recorded.versions().iter().filter_map(|one| one["title"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(titles(&[":/more work"]), ["more work"]);
    assert_eq!(titles(&["HEAD^{/more work}..HEAD"]), ["less work"]);
    assert_eq!(titles(&["HEAD ^HEAD~1"]), ["less work"]);
    assert_eq!(titles(&["--commits", ":/more work,HEAD"]), ["more work", "less work"]);
    let answer = place.history(&[":/no such work"]);
    assert!(answer.code == 2 && answer.stderr.contains("revision ‘:/no such work’"), "{}", answer.exchange());
}

/// A repository of ten commits. The seventh allocates more, and the last one changes documents only.
fn one_costs_more(place: &Place) -> Repository {
    let repository = Repository::new(place, "repo");
    repository.commit_allocations((0..9).map(|index| if index < 6 { 100 } else { 200 }));
    repository.write("README", "documents");
    repository.commit("documents");
    repository
}

#[test]
fn a_change_among_commits_that_were_left_out_is_attributed_to_none_of_them_until_bisected() {
    let place = Place::new();
    let repository = one_costs_more(&place);
    let short = |revision: &str| repository.git(&["rev-parse", "--short=10", revision]);
    let every = ["--every", "6", "--rounds", "2", "--metrics", "malloc.bytes"];
    let answer = place
        .history(&[&every[..], &["--export-markdown", "page.md", "--export-html", "page.html"]].concat());
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let culprit = format!("one of 6 commits, {}..{}", short("HEAD~6"), short("HEAD"));
    let texts = [
        "2 versions: 2 weighed; 5 commits between them were left out\n",
        &format!("regression  {culprit} malloc bytes"),
        "#1 comes from one of 6 commits; 5 of them were left out: `scruple history bisect --repo repo`",
    ];
    let report = answer.stdout.replace("\n    ", " ");
    assert!(texts.iter().all(|text| report.contains(text)), "{report}");
    assert!(!answer.stdout.contains("documents"), "{}", answer.stdout);
    let markdown = std::fs::read_to_string(place.file("page.md")).expect("a page");
    assert!(markdown.contains(&format!(" – {culprit}\n")), "{markdown}");
    assert!(markdown.contains(&format!("| 1 | {culprit} |  |")), "{markdown}");
    let html = std::fs::read_to_string(place.file("page.html")).expect("a page");
    assert!(html.contains(&culprit) && html.contains("5 commits before it left out"), "{html}");
    let json = place.run(["history", "report", "--repo", "repo", "--json"]).json();
    assert_eq!(json["events"][0]["left_out"], 5);
    assert_eq!(json["history"]["versions"][1]["left_out"], 5);
    // The bisection that the report proposes needs no further arguments.
    let bisect = |words: &[&str]| {
        let words = [&["history", "bisect", "--repo", "repo", "--metrics", "malloc.bytes"], words].concat();
        let answer = place.run(words);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        assert!(
            answer.stdout.contains(&format!("regression  {}  version 6\n", short("HEAD~3"))),
            "{}",
            answer.stdout
        );
        // The report proposes no further bisection.
        assert!(!answer.stdout.contains("bisect"), "{}", answer.stdout);
        place.recorded()
    };
    let recorded = bisect(&["--rounds", "2"]);
    assert_eq!(recorded.versions().len(), 7);
    assert!(recorded.states().contains(&"skipped"), "{:?}", recorded.states());
    // The same selection lists the same versions again, and a bisection of it covers the commits between them.
    let answer = place.history(&every);
    assert!(answer.stdout.contains(&culprit), "{}", answer.stdout);
    assert_eq!(bisect(&every[..4]).count("time.wall"), recorded.count("time.wall"));
}

#[test]
fn only_commits_that_a_version_has_first_are_left_out_before_it() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1, 2]);
    repository.git(&["checkout", "--quiet", "-b", "side"]);
    repository.write("side", "1");
    repository.commit("side 1");
    repository.write("side", "2");
    repository.commit("side 2");
    repository.git(&["checkout", "--quiet", "main"]);
    repository.commit_program("version 2", 10, 3, "");
    repository.git(&["merge", "--quiet", "--no-ff", "-m", "merge", "side"]);
    repository.commit_program("last", 10, 4, "");
    let left_out = |words: &[&str]| -> Vec<u64> {
        let answer = place.history(&[words, &["--rounds", "1", "--time-only"]].concat());
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        place.recorded().versions().iter().filter_map(|version| version["left_out"].as_u64()).collect()
    };
    assert_eq!(left_out(&[]), [0; 7]);
    assert_eq!(left_out(&["--first-parent"]), [0; 5]);
    assert_eq!(left_out(&["--commits", "main~4,main~2,main"]), [0, 1, 3]);
    assert_eq!(left_out(&["--commits", "main~4,side,main~2,main"]).iter().sum::<u64>(), 3);
    assert_eq!(left_out(&["--first-parent", "--commits", "main~4,main"]), [0, 3]);
    assert_eq!(left_out(&["--no-merges"]).iter().sum::<u64>(), 1);
}

#[test]
fn what_a_configuration_names_is_below_the_tree_and_no_other_file_is_touched() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    repository.commit_allocations([1, 2]);
    place.write("kept", "mine");
    let absolute = place.file("kept").display().to_string();
    let outside = [absolute.as_str(), "../../../../../../../../kept", "../kept"];
    for named in outside {
        for table in [
            format!("[build]\nartifacts = [\"{named}\"]\n"),
            format!(
                "[[history.overlay]]\ncommits = \"HEAD\"\nreplace = {{ file = \"{named}\", from = \"mine\", to = \"\" }}\n"
            ),
        ] {
            place.write("scruple.toml", &table);
            let words = ["history", "--repo", "repo", "--rounds", "1", "--time-only", "--", "./app"];
            let answer = place.run(words);
            assert_eq!(answer.code, 2, "{table}{}", answer.exchange());
            let why = "is not a path below the top of the tree";
            assert!(
                named.starts_with("..") && table.contains("replace") || answer.stderr.contains(why),
                "{}",
                answer.exchange()
            );
        }
        let answer = place.history(&["--artifact", named]);
        assert_eq!(answer.code, 2, "{}", answer.exchange());
        assert_eq!(std::fs::read_to_string(place.file("kept")).expect("the file"), "mine");
    }
}

#[test]
fn what_is_behind_a_link_that_leads_out_of_the_tree_is_neither_removed_nor_changed() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    place.write("kept", "mine");
    std::os::unix::fs::symlink(place.path(), place.file("repo/out")).expect("a link");
    repository.commit_allocations([1, 2]);
    let words = ["history", "--repo", "repo", "--rounds", "1", "--time-only", "--build", "true"];
    let answer = place.run(words.iter().chain(&["--artifact", "out/kept", "--", "./out/kept"]));
    assert_eq!(place.read("kept"), "mine", "{}", answer.exchange());
    place.write(
        "scruple.toml",
        "[[history.overlay]]\ncommits = \"HEAD\"\nreplace = { file = \"out/kept\", from = \"mine\", to = \"\" }\n",
    );
    let answer = place.history(&["--rounds", "1", "--time-only"]);
    assert!(answer.stderr.contains("leads out of the tree"), "{}", answer.exchange());
    assert_eq!(place.read("kept"), "mine");
}
