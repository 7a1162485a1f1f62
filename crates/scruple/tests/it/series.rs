//! Series of the user's own: imported, searched for change points, and charted.

use crate::repository::Repository;
use crate::support::Place;
use serde_json::Value;

/// Values at two levels with a fixed scatter. The second level begins at the index `at`.
fn values(levels: [f64; 2], at: usize, count: usize) -> Vec<f64> {
    let scatter = [0.3, -0.8, 0.5, -0.2, 0.9, -0.6, 0.1, -0.4, 0.7, -0.5, 0.2];
    (0..count).map(|i| levels[usize::from(i >= at)] + scatter[i % scatter.len()] * 0.01).collect()
}

/// The changes of each series of the history `name`: the metric, the version, and whether there is a ratio.
fn changes(place: &Place, name: &str) -> Vec<(String, String, bool)> {
    let page = place.run(["history", "report", name, "--json"]).json();
    let versions = page["history"]["versions"].as_array().expect("versions");
    let commit =
        |at: &Value| versions[at.as_u64().expect("a place") as usize]["commit"].as_str().unwrap_or("");
    let mut found = Vec::new();
    for series in page["series"].as_array().expect("series") {
        for change in series["changes"].as_array().expect("changes") {
            let metric = series["metric"].as_str().expect("a metric").to_owned();
            found.push((metric, commit(&change["at"]).to_owned(), change["ratio"].is_number()));
        }
    }
    found
}

#[test]
fn a_table_of_values_is_judged_and_charted_like_a_history() {
    let place = Place::new();
    let (size, drift) = (values([2.0, 2.2], 18, 30), values([-0.5, 0.5], 12, 30));
    let rows: String = (0..30).map(|i| format!("c{i:02},{},{}\n", size[i], drift[i])).collect();
    place.write("own.csv", format!("commit,size (MB),drift (ms)\n{rows}"));
    let imported = place.run(["store", "import", "--label", "mine", "own.csv"]);
    assert_eq!(imported.code, 0, "{}", imported.exchange());
    assert!(imported.stdout.contains("Imported 30 versions of 1 subject"), "{}", imported.exchange());
    assert_eq!(
        changes(&place, "mine"),
        [("drift".to_owned(), "c12".to_owned(), false), ("size".to_owned(), "c18".to_owned(), true)]
    );
    let report = place.run(["history", "report", "mine", "--export", "own.html", "--export", "own.svg"]);
    assert_eq!(report.code, 0, "{}", report.exchange());
    assert!(report.stdout.contains("taken one after another"), "{}", report.exchange());
    assert!(report.stdout.contains("c12") && report.stdout.contains("+1.0"), "{}", report.exchange());
    assert!(place.read("own.html").contains("c18") && place.read("own.svg").contains("<svg"));
    assert!(!place.read("own.html").contains("‘’"), "versions of a table have no titles");
    let trend = place.run(["trend", "own"]);
    assert!(
        trend.code == 2 && trend.stderr.contains("`scruple history report` shows"),
        "{}",
        trend.exchange()
    );
    let shown = place.run(["show", "mine"]);
    assert_eq!(shown.stdout, report.stdout, "one line for each series and one for each change");
    // A JSON file with the same values gives the same change.
    let objects: Vec<Value> =
        (0..30).map(|i| serde_json::json!({"commit": format!("c{i:02}"), "value": size[i], "unit": "MB", "metric": "size"})).collect();
    place.write("own.json", serde_json::to_string(&objects).expect("JSON"));
    assert_eq!(place.run(["store", "import", "--label", "json", "own.json"]).code, 0);
    assert_eq!(changes(&place, "json"), [("size".to_owned(), "c18".to_owned(), true)]);
}

#[test]
fn whole_numbers_that_change_once_are_shown_as_they_are() {
    let place = Place::new();
    let report = |parts: &[(u32, usize)]| {
        let values = parts.iter().flat_map(|&(value, count)| std::iter::repeat_n(value, count));
        let rows: String = values.enumerate().map(|(i, value)| format!("c{i:02},{value}\n")).collect();
        place.write("own.csv", format!("commit,value\n{rows}"));
        assert_eq!(place.run(["store", "import", "own.csv"]).code, 0);
        place.run(["history", "report", "last"]).stdout
    };
    // The smallest difference between these values is larger than the first level.
    let found = report(&[(42, 4), (168, 8)]);
    assert!(found.contains("42.0 → 168  4.00"), "{found}");
    // The two levels differ by the smallest difference between values, which is not noise.
    let found = report(&[(10, 8), (20, 6)]);
    assert!(found.contains("regression  c08"), "{found}");
}

#[test]
fn results_of_asv_make_one_history() {
    let place = Place::new();
    std::fs::create_dir_all(place.file("results/machine")).expect("a folder");
    place.write("results/benchmarks.json", "{}");
    for (i, seconds) in values([1.0, 1.3], 9, 16).into_iter().enumerate() {
        // The order of the files' names is the reverse of that of their dates, which must decide.
        let name = format!("results/machine/{:08x}-env.json", 0xfeed_0000_u32 - i as u32);
        let text = format!(
            "{{\"commit_hash\": \"{i:040x}\", \"date\": {}, \"requirements\": {{}}, \"env_name\": \"env\", \"version\": 2, \
             \"result_columns\": [\"result\", \"params\"], \"results\": {{\"time_parse\": [[{seconds}, NaN], [[\"a\", \"b\"]]], \"time_broken\": null}}}}",
            1000 * i
        );
        place.write(&name, text);
    }
    let imported = place.run(["store", "import", "results"]);
    assert_eq!(imported.code, 0, "{}", imported.exchange());
    assert_eq!(changes(&place, "last"), [("time.wall".to_owned(), format!("{:040x}", 9), true)]);
    let broken: Vec<&str> = imported.stdout.lines().filter(|line| line.contains("time_broken")).collect();
    assert_eq!(broken.len(), 1, "{}", imported.exchange());
    assert!(broken[0].ends_with("‘00000000’"), "{}", imported.exchange());
}

#[test]
fn commits_of_one_second_are_in_the_order_of_git_if_it_knows_them() {
    let place = Place::new();
    let repository = Repository::new(&place, "repo");
    let commits = ["one", "two", "three"].map(|title| repository.commit(title));
    std::fs::create_dir_all(place.file("repo/results")).expect("a folder");
    for (i, commit) in commits.iter().rev().enumerate() {
        let text = format!(
            "{{\"commit_hash\": \"{commit}\", \"date\": 1000, \"requirements\": {{}}, \"env_name\": \"env\", \
             \"version\": 2, \"result_columns\": [\"result\"], \"results\": {{\"time_parse\": [[{i}.5]]}}}}"
        );
        place.write(&format!("repo/results/{i}.json"), text);
    }
    let order = |folder: &str| -> (Vec<String>, bool) {
        let run = |words: &[&str]| place.finish(place.command(words).current_dir(place.file(folder)));
        let imported = run(&["store", "import", place.file("repo/results").to_str().expect("UTF-8")]);
        assert_eq!(imported.code, 0, "{}", imported.exchange());
        let found = run(&["history", "report", "last", "--json"]).json();
        let versions = found["history"]["versions"].as_array().expect("versions").clone();
        let ids = versions.iter().map(|version| version["commit"].as_str().unwrap_or_default().to_owned());
        (ids.collect(), imported.unwrapped().contains("have the time of another one"))
    };
    assert_eq!(order("repo"), (commits.to_vec(), false));
    let backwards: Vec<String> = commits.iter().rev().cloned().collect();
    assert_eq!(order("."), (backwards, true));
}

#[test]
fn a_series_that_cannot_be_read_is_one_error_that_names_the_line() {
    let place = Place::new();
    place.write("good.csv", "commit,value\na,1\nb,2\n");
    place.write("bad.csv", "commit,value\na,1\nb,twelve\n");
    let answer = place.run(["store", "import", "good.csv", "bad.csv"]);
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{}", answer.exchange());
    assert!(answer.stderr.contains("line 3") && answer.stderr.contains("‘twelve’"), "{}", answer.exchange());
    assert_eq!(place.run(["store", "list"]).stdout.lines().filter(|line| line.contains("good")).count(), 0);
    // The report says that two values are too few to find changes.
    assert_eq!(place.run(["store", "import", "good.csv"]).code, 0);
    let report = place.run(["history", "report", "last"]);
    assert!(report.stdout.contains("2 values are too few"), "{}", report.exchange());
    assert!(report.stdout.contains("No series could be judged."), "{}", report.exchange());
    // A number that is finite, but not in nanoseconds.
    place.write("huge.csv", "commit,value,unit\na,1e303,ms\nb,1e303,s\n");
    let huge = place.run(["store", "import", "huge.csv"]);
    assert_eq!((huge.code, huge.stdout.as_str()), (2, ""), "{}", huge.exchange());
    assert!(huge.stderr.contains("‘huge’: inf is not a possible reading"), "{}", huge.exchange());
    // Two histories are no runs to compare; each subject is named once.
    place.write("other.csv", "commit,value\na,1\nb,2\n");
    assert_eq!(place.run(["store", "import", "other.csv"]).code, 0);
    let compared = place.run(["compare", "last~1", "last"]);
    assert!(compared.stderr.contains("(‘good’) and"), "{}", compared.exchange());
}

#[test]
fn a_few_values_in_between_do_not_make_the_whole_range_uncertain() {
    let place = Place::new();
    let mut all = values([1.0, 1.5], 60, 64);
    all.extend(values([1.2, 1.2], 0, 60));
    let lines: String = all.iter().enumerate().map(|(i, value)| format!("c{i},{value}\n")).collect();
    place.write("three.csv", format!("commit,value\n{lines}"));
    assert_eq!(place.run(["store", "import", "three.csv"]).code, 0);
    let page = place.run(["history", "report", "last", "--json"]).json();
    let series = &page["series"][0];
    let width = |of: &Value| {
        let bound = |name: &str| of["interval"][name].as_f64().expect("an interval");
        bound("high") / bound("low") - 1.0
    };
    let (whole, steps) = (width(&series["whole"]), series["changes"].as_array().expect("changes"));
    assert!(steps.len() == 2 && steps.iter().all(|step| whole < 0.6 * width(step)), "{series:#}");
}

#[test]
fn the_whole_range_is_not_known_better_than_its_only_step() {
    let place = Place::new();
    let lines = values([1.0, 2.0], 4, 7).into_iter().map(|value| format!("{value}\n")).enumerate();
    let lines: String = lines.map(|(i, value)| format!("c{i},{value}")).collect();
    place.write("few.csv", format!("commit,value\n{lines}"));
    assert_eq!(place.run(["store", "import", "few.csv"]).code, 0);
    let page = place.run(["history", "report", "last", "--json"]).json();
    let series = &page["series"][0];
    for bound in ["low", "high"] {
        let of = |judged: &Value| judged["interval"][bound].as_f64().expect("an interval");
        let (whole, step) = (of(&series["whole"]), of(&series["changes"][0]));
        assert!((whole / step - 1.0).abs() < 0.01, "{bound}: {whole} {step}");
    }
}
