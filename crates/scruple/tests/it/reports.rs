//! `scruple report`: pages, tables and pictures of stored runs.

use crate::scripted_readings::{Arm, arm, noisy_arm};
use crate::support::Place;

/// A place whose store holds a run of two arms.
fn place() -> Place {
    let place = Place::new();
    let arms = [("old", noisy_arm(1.0, 1, 0.01)), ("new", noisy_arm(1.1, 2, 0.01))];
    let words = ["--label", "both", "-n", "old", "-n", "new", "-r", "26", "true", "true new"];
    assert_eq!(place.play(&arms, &words).code, 0);
    place
}

fn written(place: &Place, words: &[&str], name: &str) -> String {
    let answer = place.run(["report"].iter().chain(words));
    assert_eq!((answer.code, answer.stdout.as_str()), (0, ""), "{}", answer.exchange());
    place.read(name)
}

#[test]
fn the_first_line_is_the_verdict_that_show_prints() {
    let place = place();
    let page = written(&place, &["--export", "page.html"], "page.html");
    let shown = place.run(["show"]).stdout.replace('\n', " ");
    let sentence = "‘new’ takes 10.2 % more wall time than ‘old’ (95.2 % sure: ";
    let heading = page.split("<h1>").nth(1).and_then(|rest| rest.split("</h1>").next()).expect("a heading");
    let heading = heading.replace('\u{a0}', " ");
    assert!(heading.contains(sentence) && shown.contains(sentence), "{heading}\n{shown}");
    assert!(heading.contains("class=\"worse\""), "{heading}");
}

#[test]
fn names_of_commands_are_code_in_tables_and_legends() {
    let place = place();
    let page = written(&place, &["--export", "page.html"], "page.html");
    let legend = page.split("class=\"legend\"").nth(1).and_then(|rest| rest.split("</ul>").next());
    let (table, legend) = (page.split("<table").nth(1).expect("a table"), legend.expect("a legend"));
    for name in ["<code>old</code>", "<code>new</code>"] {
        assert!(table.contains(name) && legend.contains(name), "{name} is not in\n{legend}");
    }
}

#[test]
fn a_page_needs_no_other_file() {
    let place = place();
    let page = written(&place, &["last", "--export", "page.html"], "page.html");
    for foreign in ["<script", "<link rel=\"stylesheet\"", "@import", "url(", "src=", "http://", "https://"] {
        let places: Vec<_> =
            page.match_indices(foreign).map(|(at, _)| &page[at..(at + 40).min(page.len())]).collect();
        assert!(places.is_empty(), "{places:?}");
    }
    assert!(page.contains("Content-Security-Policy") && page.contains("default-src 'none'"));
    // A page with 40 readings in three metrics consists mostly of the readings.
    assert!(page.len() < 150_000, "{} bytes", page.len());
}

#[test]
fn every_reading_is_on_the_page_and_in_the_rows() {
    let place = place();
    let json = place.run(["show", "--json"]).json();
    let rows = written(&place, &["--export", "page.csv"], "page.csv");
    for arm in ["old", "new"] {
        let known =
            json["arms"].as_array().expect("arms").iter().find(|one| one["name"] == arm).expect("the arm");
        let readings = known["metrics"]["time.wall"]["readings"].as_array().expect("readings");
        for (block, reading) in readings.iter().enumerate() {
            let reading = reading.as_f64().expect("a number");
            let row = format!("wall-time-readings,{arm},reading,{block},{reading},,,yes\n");
            assert!(rows.contains(&row), "{row} is missing");
        }
    }
    let page = written(&place, &["--export", "page.html"], "page.html");
    let first = page
        .split("<h2>Wall time</h2>")
        .nth(1)
        .expect("wall time")
        .split("</section>")
        .next()
        .expect("its end");
    assert_eq!(first.matches("<circle").count() + first.matches("class=\"over").count(), 2 * 20, "{first}");
}

#[test]
fn markdown_begins_with_the_verdict_and_has_every_metric() {
    let place = place();
    let text = written(&place, &["both", "--export", "page.md"], "page.md");
    assert!(text.starts_with("### ‘new’ takes 10.2 % more wall time than ‘old’ ("), "{text}");
    for metric in ["| wall time |", "| cpu time |", "| malloc bytes |"] {
        assert!(text.contains(metric), "{metric} is not in\n{text}");
    }
}

#[test]
fn json_has_what_the_charts_draw() {
    let place = place();
    let text = written(&place, &["--export", "page.json"], "page.json");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["page"]["verdict"][0]["tone"], "worse");
    let sections = json["page"]["sections"].as_array().expect("sections");
    assert!(sections.iter().any(|section| section["title"] == "Wall time"), "{sections:?}");
}

#[test]
fn one_chart_is_a_picture_and_wrong_names_say_which_there_are() {
    let place = place();
    let picture = written(&place, &["--svg", "wall-time-readings", "--export", "one.svg"], "one.svg");
    assert!(
        picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && picture.ends_with("</svg>\n")
    );
    assert_eq!(picture.matches("<circle").count() - 1, 40, "a reading each, and the shape of the mark");
    let list = place.run(["report", "--svg", "list"]);
    assert!(list.stdout.contains("wall-time-readings\tEvery reading\n"), "{}", list.exchange());
    let answer = place.run(["report", "--svg", "pie"]);
    assert_eq!(answer.code, 2);
    assert!(
        answer.stderr.contains("there is no chart ‘pie’: there are ")
            && answer.stderr.contains("wall-time-course")
    );
}

#[test]
fn wrong_files_and_formats_are_reported_before_anything_is_read() {
    let place = place();
    for (words, message) in [
        (&["--export", "page.pdf"][..], "cannot export ‘page.pdf’: this verb writes .html"),
        (&["--export", "page.svg"], "name it with --svg"),
        (&["--export", "page.html", "--svg", "x"], "--svg writes a picture"),
        (&["--export", "no/such/folder.html"], "cannot write"),
        (&["nobody"], "no stored run is called ‘nobody’"),
        (&["--metrics", "time.wal"], "did you mean"),
    ] {
        let answer = place.run(["report"].iter().chain(words));
        assert_eq!(answer.code, 2, "{words:?}: {}", answer.exchange());
        assert!(answer.stderr.contains(message), "{words:?}: {}", answer.stderr);
    }
}

#[test]
fn charts_are_drawn_on_a_terminal_too() {
    let place = place();
    let mut command = place.command(["report"]);
    let answer = place.finish(command.env("COLUMNS", "80"));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let widest = answer.stdout.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    assert!(widest <= 80, "{widest}\n{}", answer.stdout);
    for part in ["Difference from ‘old’", "├", "Share of readings at or below"] {
        assert!(answer.stdout.contains(part), "{part} is not in\n{}", answer.stdout);
    }
    let mut shown = place.command(["show", "--chart"]);
    let shown = place.finish(shown.env("COLUMNS", "80"));
    assert!(shown.stdout.contains("Share of readings at or below"), "{}", shown.exchange());
    assert!(answer.stdout.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c)), "{}", answer.stdout);
}

#[test]
fn several_arms_are_described_in_one_sentence_that_hides_nothing() {
    let place = Place::new();
    let costly = arm(1.0, 3).with("counting", "malloc.bytes", |_| 5000.0);
    let arms: [(&str, Arm); 3] = [("a", arm(1.0, 1)), ("b", arm(1.2, 2)), ("c", costly)];
    let words = ["-n", "a", "-n", "b", "-n", "c", "-r", "26", "true", "true b", "true c"];
    assert_eq!(place.play(&arms, &words).code, 0);
    let text = written(&place, &["--export", "page.md"], "page.md");
    let first = text.lines().next().expect("a line");
    assert!(
        first.contains("‘c’ takes the same wall time")
            && first.contains("malloc bytes more: +22.1 % (+904 B) for ‘c’"),
        "{first}"
    );
}

#[test]
fn two_runs_are_distinguished_once_and_what_is_the_same_is_shown_once() {
    let place = Place::new();
    for (label, factor, seed) in [("before", 1.0, "1"), ("after", 1.3, "2")] {
        let arms = [
            ("a", noisy_arm(factor, 1, 0.01)),
            ("b", noisy_arm(1.0, 2, 0.001)),
            ("c", noisy_arm(1.0, 3, 0.001)),
        ];
        let names = ["--seed", seed, "--label", label, "-n", "a", "-n", "b", "-n", "c", "-r", "26"];
        let words: Vec<&str> = names.into_iter().chain(["true", "true b", "true c"]).collect();
        assert_eq!(place.play(&arms, &words).code, 0);
    }
    let text = written(&place, &["before", "after", "--export", "page.md"], "page.md");
    let first = text.lines().next().expect("a line");
    assert!(first.starts_with("### ‘after’ against ‘before’: ‘a’ is slower in "), "{first}");
    assert!(first.contains("; ‘b’ and ‘c’ take the same "), "{first}");
    assert!(!first.contains('@'), "{first}");
}

#[test]
fn a_scan_is_summarised_by_its_growth_and_every_size_is_drawn() {
    let place = Place::new();
    let sizes: Vec<String> = (1..=9).map(|n| format!("true {n}")).collect();
    let each = sizes.iter().zip(1..);
    let arms: Vec<(&str, Arm)> =
        each.map(|(name, n)| (name.as_str(), noisy_arm(f64::from(n), n as u64, 0.001))).collect();
    let words = ["-P", "n", "1", "9", "-r", "18", "true {n}", "--metrics", "time.wall,malloc.bytes"];
    assert_eq!(place.play(&arms, &words).code, 0);
    let text = written(&place, &["--export", "page.md"], "page.md");
    let first = text.lines().next().expect("a line");
    assert!(
        first.contains("Wall time is ")
            && first.contains("· n. Of 8 comparisons with ‘true 1’ in wall time: "),
        "{first}"
    );
    let listed = place.run(["report", "--svg", "list", "--metrics", "time.wall,malloc.bytes"]).stdout;
    assert!(!listed.contains("malloc-bytes-growth"), "what never changes is not drawn: {listed}");
    let picture = written(&place, &["--svg", "wall-time-growth-n", "--export", "one.svg"], "one.svg");
    assert!(!picture.contains("class=\"over"), "{picture}");
}

#[test]
fn scaling_over_threads_has_a_chart_with_the_ideal_and_a_table() {
    let place = Place::new();
    let arms: Vec<(&str, Arm)> =
        [("true 1", 1.0), ("true 2", 0.5), ("true 4", 0.5)].map(|(name, cost)| (name, arm(cost, 1))).into();
    assert_eq!(place.play(&arms, &["-L", "threads", "1,2,4", "-r", "18", "true {threads}"]).code, 0);
    let text = written(&place, &["--export", "page.md"], "page.md");
    assert!(text.contains("## Scaling over threads"), "{text}");
    let row = |threads: u32| {
        let start = format!("| {threads} | ");
        let row =
            text.lines().find(|line| line.starts_with(&start) && line.contains("/s")).unwrap_or_default();
        row.split('|').map(|cell| cell.trim().to_owned()).skip(3).take(2).collect::<Vec<String>>()
    };
    assert_eq!(row(2), ["2.00 ×", "100 %"], "{text}");
    assert_eq!(row(4), ["2.00 ×", "50 %"], "{text}");
    assert!(
        !text.contains("**Wall time by threads**"),
        "the growth of what shrinks with threads is not drawn: {text}"
    );
    let picture = written(&place, &["--svg", "threads-true-threads", "--export", "one.svg"], "one.svg");
    assert!(
        picture.contains("4 threads: ") && picture.matches("path class=\"curve").count() == 2,
        "{picture}"
    );
}

#[test]
fn of_eight_commands_each_distribution_stands_beside_that_of_the_reference() {
    let place = Place::new();
    let names: Vec<String> = (0..8).map(|n| format!("true {n}")).collect();
    let arms: Vec<(&str, Arm)> =
        names.iter().zip(1..).map(|(name, n)| (name.as_str(), noisy_arm(1.0, n, 0.05))).collect();
    let words: Vec<&str> = ["-r", "18"].into_iter().chain(names.iter().map(String::as_str)).collect();
    assert_eq!(place.play(&arms, &words).code, 0);
    let listed = place.run(["report", "--svg", "list"]).stdout;
    assert_eq!(listed.matches("wall-time-distribution-true-").count(), 7, "{listed}");
    let picture =
        written(&place, &["--svg", "wall-time-distribution-true-7", "--export", "one.svg"], "one.svg");
    assert!(picture.contains("readings of true 0") && picture.contains("readings of true 7"), "{picture}");
}

#[test]
fn a_run_that_has_just_ended_has_the_page_of_the_stored_one() {
    let place = Place::new();
    let arms = [("old", noisy_arm(1.0, 1, 0.01)), ("new", noisy_arm(1.1, 2, 0.01))];
    let words = ["--export", "live.html", "-n", "old", "-n", "new", "-r", "26", "true", "true new"];
    assert_eq!(place.play(&arms, &words).code, 0);
    assert_eq!(written(&place, &["--export", "page.html"], "page.html"), place.read("live.html"));
}

#[test]
fn the_former_option_for_the_newest_run_says_what_to_write() {
    let answer = place().run(["report", "--last"]);
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    assert_eq!(answer.stderr, "error: `scruple report --last` is now `scruple report last`\n");
}

#[test]
fn a_run_without_charts_says_so_instead_of_listing_none() {
    let place = Place::new();
    assert_eq!(place.run(["run", "-r", "1", "true"]).code, 0);
    let listed = place.run(["report", "--svg", "list"]);
    assert_eq!((listed.code, listed.stdout.as_str()), (2, ""));
    assert!(listed.stderr.contains("no metric has more than one reading"), "{}", listed.exchange());
}
