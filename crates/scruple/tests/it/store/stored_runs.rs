//! Stored runs: listed, shown again, compared, found by id, label and position.

use crate::scripted_readings::arm;
use crate::support::{Answer, Place, at};
use insta::assert_snapshot;

/// A place whose store holds two runs: seed 1 with the label `before`, and seed 2, in which `new` is a tenth slower.
fn place_with_two_runs() -> Place {
    let place = Place::new();
    let take = |seed: &str, factor: f64, more: &[&str]| {
        let words = ["-n", "old", "-n", "new", "-r", "26", "--seed", seed, "true", "true 2"];
        let words: Vec<&str> = words.iter().chain(more).copied().collect();
        let answer = place.play(&[("old", arm(1.0, 1)), ("new", arm(factor, 2))], &words);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        assert!(
            answer.stdout.contains(&format!("Stored as scripted-{seed} in store.db")),
            "{}",
            answer.stdout
        );
    };
    take("1", 1.0, &["--label", "before"]);
    take("2", 1.1, &[]);
    place
}

#[test]
fn a_command_that_a_report_suggests_names_the_store_where_it_must() {
    let place = Place::new();
    let suggested = |text: &str| {
        let (_, command) = text.split_once("`scruple ").expect("a command");
        shell_words::split(command.split('`').next().unwrap_or_default()).expect("words")
    };
    for (store, named) in [("my store.db", true), ("./store.db", false)] {
        let words = ["--store", store, "-r", "16", "true"];
        let shown = suggested(&place.play(&[("true", arm(1.0, 1))], &words).stdout);
        assert_eq!(shown.iter().any(|word| word == "--store"), named, "{shown:?}");
        let answer = place.run(&shown);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
    }
    let missing = place.run(["show", "nothing", "--store", "my store.db"]);
    let listed = place.run(suggested(&missing.stderr));
    assert!(listed.stdout.contains("scripted-1"), "{}", listed.exchange());
}

fn show(place: &Place, name: &str) -> Answer {
    place.run(["show", name, "--metrics", "time.wall"])
}

#[test]
fn the_list_has_the_newest_run_first() {
    let place = place_with_two_runs();
    assert_snapshot!(place.run(["store", "list"]).exchange(), @r"
    exit 0
    --- stdout
    scripted-2  1970-01-01 00:00:00 UTC          old | new
    scripted-1  1970-01-01 00:00:00 UTC  before  old | new
    ");
    assert_snapshot!(place.run(["store", "list", "--json", "-n", "1"]).exchange(), @r#"
    exit 0
    --- stdout
    [
      {
        "id": "scripted-2",
        "label": null,
        "started": "1970-01-01T00:00:00Z",
        "state": "complete",
        "arms": [
          "old",
          "new"
        ],
        "argv": []
      }
    ]
    "#);
}

#[test]
fn a_run_is_shown_again_as_it_was() {
    let place = place_with_two_runs();
    assert_snapshot!(show(&place, "last").exchange(), @"
    exit 0
    --- stdout
    2 commands · 20 blocks, interleaved · seed 2

    wall
      old  5.130 ms  [5.077, 5.196]  ▇█▇▆                                  reference
      new  5.644 ms  [5.585, 5.710]          ▆▄▆█  +10.0 % [+10.0, +10.1]  slower

    ‘new’ takes 10.0 % more wall time than ‘old’ (95.2 % sure: +9.98 % to +10.1 %, 20 blocks).
    ");
}

#[test]
fn a_stored_run_holds_every_reading() {
    let place = Place::new();
    let words = ["-n", "old", "-n", "new", "-r", "26", "--json", "true", "true 2"];
    let taken = place.play(&[("old", arm(1.0, 1)), ("new", arm(1.1, 2))], &words);
    assert_eq!(taken.json(), place.run(["show", "--json"]).json());
}

#[test]
fn a_run_is_found_by_label_by_position_and_by_id() {
    let place = place_with_two_runs();
    let seed = |name: &str| {
        let answer = show(&place, name);
        answer.stdout.lines().next().and_then(|line| line.rsplit(' ').next()).unwrap_or("").to_owned()
    };
    assert_eq!(seed("before"), "1");
    assert_eq!(seed("last~1"), "1");
    assert_eq!(seed("last~0"), "2");
    assert_eq!(seed("last"), "2");
    assert_eq!(seed("scripted-2"), "2");
}

#[test]
fn the_beginning_of_an_id_must_fit_one_run_only() {
    let place = place_with_two_runs();
    assert_snapshot!(show(&place, "scr").exchange(), @r"
    exit 2
    --- stderr
    error: ‘scr’ fits several stored runs (scripted-1, scripted-2): write more of the id
    ");
}

#[test]
fn a_name_that_fits_nothing_is_an_error() {
    let place = place_with_two_runs();
    assert_snapshot!(show(&place, "after").exchange(), @r"
    exit 2
    --- stderr
    error: no stored run is called ‘after’ in ‘store.db’: `scruple store list` shows them all
    ");
    for name in ["last~2", "last~x", "lastly", "", "%", "_cripted-1"] {
        let answer = show(&place, name);
        assert_eq!(answer.code, 2, "‘{name}’: {}", answer.exchange());
        assert!(answer.stderr.contains("no stored run is called"), "‘{name}’: {}", answer.exchange());
    }
    place.write("page.html", "");
    let answer = show(&place, "page.html");
    assert!(answer.stderr.contains("it is a file, which `scruple store import`"), "{}", answer.exchange());
}

#[test]
fn two_runs_are_compared_arm_by_arm() {
    let place = place_with_two_runs();
    let answer = place.run(["compare", "before", "last", "--metrics", "time.wall,malloc.bytes"]);
    assert_snapshot!(answer.exchange(), @r#"
    exit 0
    --- stdout
    2 commands · 20 blocks of each run · seed 2

    The runs were taken 0 seconds apart, in environments without recorded differences.

    wall
      old @before      5.130 ms  [5.077, 5.196]  ▇█▇▆                                    reference
      old @scripted-2  5.130 ms  [5.077, 5.196]  ▇█▇▆          0.00 % [-1.12, +1.13]     same
      new @before      5.131 ms  [5.077, 5.191]  ▇▇█▆                                    reference
      new @scripted-2  5.644 ms  [5.585, 5.710]          ▆▄▆█  +10.00 % [+8.81, +11.21]  slower
    malloc bytes
      old @before       4,096 B                                                          reference
      old @scripted-2   4,096 B                                ±0                        same
      new @before       4,096 B                                                          reference
      new @scripted-2   4,096 B                                ±0                        same

    ‘old @scripted-2’ and ‘old @before’ take the same wall time, within 2.0 % (97.6 % sure: -1.12 % to
    +1.13 %, 20 blocks).
    ‘new @scripted-2’ takes 10.0 % more wall time than ‘new @before’ (97.6 % sure: +8.81 % to +11.2 %,
    20 blocks).
    ! the two runs were not taken side by side: whatever else changed on the machine in between is part
      of the difference
    "#);
}

#[test]
fn what_widens_the_margin_of_two_runs_is_said() {
    let place = Place::new();
    for (label, seed) in [("before", 1), ("after", 2)] {
        // A tenth of the time was waiting for a core.
        let waits = arm(1.0, seed).with("timing", "time.wait", |_| 5.13e5);
        let words = ["-n", "sort", "-r", "20", "--seed", &seed.to_string(), "--label", label, "true"];
        place.play(&[("sort", waits)], &words);
    }
    let answer = place.run(["compare", "before", "after", "--metrics", "time.wall,time.cpu"]);
    let said = "Wider margins: wall 11 %. The time of the empty program, or the waiting for a core, may have \
                changed by so much between the two runs.";
    assert!(answer.unwrapped().contains(said), "{}", answer.exchange());
}

/// If the machine drifted in a short run, it is unknown by how much this changed the figures.
#[test]
fn a_margin_of_which_nothing_is_known_is_no_number() {
    let place = Place::new();
    for (label, seed, slow) in [("before", 1, 0), ("after", 2, 4)] {
        let drifting = move |launch: usize| if launch < slow { 3.0e6 } else { 1.0e5 + 1.0e3 * launch as f64 };
        let tare = arm(0.02, seed).with("timing", "time.wall", drifting);
        let words = ["-n", "sort", "-r", "20", "--seed", &seed.to_string(), "--label", label, "true"];
        place.play(&[("sort", arm(1.0, seed)), ("(empty program)", tare)], &words);
    }
    let answer = place.run(["compare", "before", "after", "--metrics", "time.wall"]);
    let said = answer.unwrapped();
    assert!(said.contains("Wider margins: wall > 1000 %."), "{}", answer.exchange());
    assert!(said.contains("may account for a difference of > 1000 %"), "{}", answer.exchange());
}

#[test]
fn arms_that_only_one_of_the_runs_has_are_named_and_not_compared() {
    let place = Place::new();
    let take = |label: &str, names: [&str; 2]| {
        let arms = names.map(|name| (name, arm(1.0, 1)));
        let (seed, names) = (if label == "before" { "1" } else { "2" }, ["-n", names[0], "-n", names[1]]);
        let words = [&names[..], &["-r", "20", "--seed", seed, "--label", label, "true", "true 2"]].concat();
        place.play(&arms, &words);
    };
    take("before", ["sort", "split"]);
    take("after", ["sort", "join"]);
    let answer = place.run(["compare", "before", "after", "--metrics", "time.wall"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let remark = |text: &str| assert!(answer.stdout.contains(text), "{}", answer.exchange());
    remark("! not compared: ‘split’ is in the run before and not in after");
    remark("! not compared: ‘join’ is in the run after and not in before");
    let same = place.run(["compare", "before", "after", "--json"]).json();
    let codes = at(&same, "/warnings").as_array().expect("warnings").iter();
    assert_eq!(codes.filter(|one| one["code"] == "not-in-both").count(), 2, "{same:#}");
}

#[test]
fn a_comparison_of_runs_can_be_a_gate() {
    let place = place_with_two_runs();
    let compare =
        |limit: &str| place.run(["compare", "before", "last", "--metrics", "time.wall", "--limit", limit]);
    assert_eq!(compare("time.cpu<+3%").code, 1, "{}", compare("time.cpu<+3%").exchange());
    assert_eq!(compare("time.cpu<+30%").code, 0, "{}", compare("time.cpu<+30%").exchange());
}

#[test]
fn runs_without_a_common_arm_cannot_be_compared() {
    let place = place_with_two_runs();
    let words = ["-n", "a", "-n", "b", "-r", "16", "--seed", "3", "true", "true 2"];
    place.play(&[("a", arm(1.0, 1)), ("b", arm(1.0, 2))], &words);
    assert_snapshot!(place.run(["compare", "before", "last"]).exchange(), @r"
    exit 2
    --- stderr
    error: the runs scripted-1 (‘old’, ‘new’) and scripted-3 (‘a’, ‘b’) have no arm of the same name: give arms names with -n when measuring
    ");
}

#[test]
fn single_arms_are_compared_whatever_their_names() {
    let place = Place::new();
    for (name, seed, factor) in [("true", "1", 1.0), ("sleep 0", "2", 1.2)] {
        place.play(&[(name, arm(factor, 1))], &["-r", "16", "--seed", seed, name]);
    }
    let answer = place.run(["compare", "last~1", "last", "--metrics", "time.cpu"]);
    assert!(answer.stdout.contains("takes 20.0 % more cpu time than"), "{}", answer.exchange());
}

#[test]
fn without_a_store_there_is_nothing_to_show() {
    let place = Place::new();
    for words in [vec!["store", "list"], vec!["show"], vec!["compare", "last~1", "last"]] {
        let answer = place.run(&words);
        assert_eq!(answer.code, 2);
        assert!(
            answer.stderr.contains("there is no store at ‘store.db’: `scruple run` makes one"),
            "{words:?}"
        );
    }
    assert!(!place.file("store.db").exists(), "reading must not make a store");
}

#[test]
fn with_no_store_nothing_is_stored() {
    let place = Place::new();
    let words = ["--no-store", "-r", "16", "true"];
    let mut command = place.command(["run", "--scripted", "script.json"].iter().chain(&words));
    place.script(&[("true", arm(1.0, 1))]);
    let answer = place.finish(command.env_remove("SCRUPLE_STORE"));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(!answer.stdout.contains("Stored as") && !place.file("data").exists());
}

#[test]
fn a_project_has_a_store_of_its_own_that_git_does_not_see() {
    let place = Place::new();
    place.write("scruple.toml", "");
    std::fs::create_dir_all(place.file("below")).expect("a folder");
    place.script(&[("true", arm(1.0, 1))]);
    let mut command = place.command(["run", "--scripted", "../script.json", "-r", "16", "true"]);
    let answer = place.finish(command.current_dir(place.file("below")).env_remove("SCRUPLE_STORE"));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(place.file(".scruple/store.db").exists());
    assert_eq!(place.read(".scruple/.gitignore"), "*\n");
}

#[test]
fn a_run_is_not_compared_with_itself() {
    let place = place_with_two_runs();
    assert_snapshot!(place.run(["compare", "last", "scripted-2"]).exchange(), @r"
    exit 2
    --- stderr
    error: ‘last’ and ‘scripted-2’ are the same run, scripted-2: name two different ones
    ");
}

#[test]
fn an_empty_file_is_a_store_without_runs() {
    let place = Place::new();
    place.write("store.db", "");
    assert_snapshot!(place.run(["store", "list"]).exchange(), @r"
    exit 2
    --- stderr
    error: there is no store at ‘store.db’: `scruple run` makes one, or name another with --store FILE
    ");
}

#[test]
fn doctor_names_the_store_that_runs_go_to() {
    let place = Place::new();
    let text = place.run(["doctor", "--quick"]).stdout;
    let line = text.lines().find(|line| line.trim_start().starts_with("store "));
    assert!(line.is_some_and(|line| line.ends_with(" store.db")), "{text}");
}

/// Imports the last run again, with another label and a changed provenance.
fn import_again(place: &Place, label: &str, change: impl Fn(&mut serde_json::Value)) {
    let mut run = place.run(["show", "last", "--json"]).json();
    (run["run"]["id"], run["run"]["label"]) = (label.into(), label.into());
    run["run"]["started"] = "1970-01-04T00:00:00Z".into();
    change(&mut run["provenance"]);
    place.write("again.json", run.to_string());
    let answer = place.run(["store", "import", "again.json"]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
}

#[test]
fn runs_of_two_machines_share_their_counts_and_not_their_times() {
    let place = place_with_two_runs();
    import_again(&place, "elsewhere", |provenance| {
        provenance["machine_class"] = "xeon/8/x86_64".into();
        provenance["kernel"] = "6.9.1".into();
    });
    let words = ["compare", "before", "elsewhere", "--metrics", "time.wall,malloc.bytes"];
    assert_snapshot!(place.run(words).exchange(), @r#"
    exit 0
    --- stdout
    2 commands · 20 blocks of each run · seed 2

    The runs were taken 3 days apart, in environments that differ: the machine (‘scripted’, then
    ‘xeon/8/x86_64’), the kernel (nothing noted, then ‘6.9.1’).
    Not compared: wall, since times of different machines cannot be compared.
    Compared: malloc bytes, which are counted, and do not depend on the machine while architecture and
    toolchain are the same.

    wall
      old @before     5.130 ms  [5.077, 5.196]  ▇█▇▆                    reference
      old @elsewhere  5.130 ms  [5.077, 5.196]  ▇█▇▆          0.00 %    can’t tell
      new @before     5.131 ms  [5.077, 5.191]  ▇▇█▆                    reference
      new @elsewhere  5.644 ms  [5.585, 5.710]          ▆▄▆█  +10.00 %  can’t tell
    malloc bytes
      old @before      4,096 B                                          reference
      old @elsewhere   4,096 B                                ±0        same
      new @before      4,096 B                                          reference
      new @elsewhere   4,096 B                                ±0        same

    Can’t tell whether ‘old @elsewhere’ takes more or less wall time than ‘old @before’: the readings
    are of two machines, so a difference need not come from the program.
    Can’t tell whether ‘new @elsewhere’ takes more or less wall time than ‘new @before’: the readings
    are of two machines, so a difference need not come from the program.
    ! the two runs were not taken side by side: whatever else changed on the machine in between is part
      of the difference
    "#);
    let document = place.run([&words[..], &["--json"]].concat()).json();
    assert_eq!(document["environments"]["differences"][0]["aspect"], "machine");
    let wall = document["comparisons"].as_array().expect("comparisons").iter();
    let wall: Vec<_> = wall.filter(|one| one["metric"] == "time.wall").collect();
    assert!(wall.iter().all(|one| one["verdict"] == "can't tell" && one["evidence"] == "absent"), "{wall:?}");
    let exceeded = place.run([&words[..], &["--limit", "time.wall<+3%"]].concat());
    assert_eq!(exceeded.code, 3, "{}", exceeded.exchange());
}

#[test]
fn a_stored_run_keeps_its_limits() {
    let place = Place::new();
    let limits = ["-r", "12", "--limit", "malloc.bytes<4MB", "--limit", "time.wall<1ms", "true"];
    let weighed = place.play(&[("true", arm(1.0, 1))], &limits);
    assert_eq!(weighed.code, 1, "{}", weighed.exchange());
    let of = |text: &str| text.lines().filter(|line| line.starts_with("Limit ")).count();
    assert_eq!(of(&weighed.stdout), 2, "{}", weighed.stdout);
    let shown = place.run(["show", "last"]);
    assert_eq!(of(&shown.stdout), 2, "{}", shown.exchange());
    assert_eq!(shown.code, 0, "a look at a run is no gate: {}", shown.exchange());
    let page = place.run(["report", "--export", "page.md"]);
    assert_eq!(page.code, 0, "{}", page.exchange());
    let text = place.read("page.md");
    let row = text.lines().find(|line| line.starts_with("| time.wall&lt;1ms |")).expect(&text);
    assert!(row.contains("exceeded"), "{row}");
    place.write("run.json", place.run(["show", "last", "--json"]).stdout);
    let imported = place.run(["store", "import", "--store", "other.db", "run.json"]);
    assert_eq!(imported.code, 0, "{}", imported.exchange());
    let again = place.run(["show", "--store", "other.db", "last"]);
    assert_eq!(of(&again.stdout), 2, "{}", again.exchange());
}

#[test]
fn a_load_that_never_began_does_not_hide_the_run_before_it() {
    let place = place_with_two_runs();
    let answer = place.run(["load", "http://127.0.0.1:1/", "--label", "before"]);
    assert_eq!(answer.code, 2, "{}", answer.exchange());
    let list = place.run(["store", "list", "--json"]).json();
    assert_eq!(list[0]["state"], "failed", "it is stored: {list:#}");
    for (name, seed) in [("last", "seed 2"), ("last~1", "seed 1"), ("before", "seed 1")] {
        let shown = show(&place, name);
        assert!(shown.stdout.contains(seed), "‘{name}’: {}", shown.exchange());
    }
    let id = list[0]["id"].as_str().expect("an id");
    assert!(show(&place, id).stdout.contains("failed"), "its id finds it");
}
