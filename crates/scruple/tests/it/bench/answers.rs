//! Answers of bench programs: Scruple refuses impossible figures with the reason, and marks coarse ones as uncertain.

use crate::fake::{bench, bench_freely, fake_line};
use crate::support::{Answer, Place, at};
use insta::assert_snapshot;

const GOOD: &str = r#"{"name":"good","cost":5}"#;

/// Returns the reason for which Scruple rejects a case whose behaviour is `does`.
fn reason(does: &str) -> String {
    let bad = format!(r#"{{"name":"bad","cost":5,"does":"{does}"}}"#);
    let answer = bench(&Place::new(), &["--no-store", "--json"], &[GOOD, &bad]);
    assert_eq!(answer.code, 4, "{}", answer.exchange());
    let why = at(&answer.json(), "/arms/2/metrics/time.wall/absent").clone();
    why.as_str().map(str::to_owned).unwrap_or_default()
}

#[test]
fn an_impossible_answer_is_refused_with_the_reason() {
    let text = "the answer to ‘block 1:c:1’ is not in the protocol: ";
    assert_eq!(reason("timeless"), format!("{text}it has no time.wall"));
    assert_eq!(reason("backwards"), format!("{text}it has a negative time, time.wall -5"));
    assert_eq!(reason("text"), format!("{text}its time.wall is not a number"));
    assert_eq!(reason("stranger"), format!("{text}it is about case 77, but case 1 was requested"));
    assert_eq!(reason("eager"), format!("{text}it is about 2 iterations, but 1 were requested"));
    let wrapped = "its alloc.bytes is 1.8446744073709552e19, which no counter of 64 bits can reach";
    assert_eq!(reason("wrapped"), format!("{text}{wrapped}"));
    assert_eq!(reason("few"), format!("{text}it has 0 of 1 batches"));
}

#[test]
fn a_case_that_cannot_run_is_refused_as_it_is_declared() {
    let refused = |fields: &str| {
        let case = format!(r#"{{"name":"odd","cost":5,{fields}}}"#);
        let answer = bench(&Place::new(), &["--no-store"], &[GOOD, &case]);
        assert_eq!(answer.code, 4, "{}", answer.exchange());
        answer.stderr
    };
    let text = refused(r#""max_iterations":0"#);
    assert!(text.contains("‘odd’ has max_iterations 0, and a batch has at least one"), "{text}");
    let text = refused(r#""throughput":{"unit":"bytes","amount":1e300}"#);
    assert!(text.contains("‘odd’ has a throughput of 1e300 in an iteration"), "{text}");
    let nothing = r#"{"name":"nothing","cost":5,"throughput":{"unit":"items","amount":0}}"#;
    let answer = bench(&Place::new(), &["--no-store"], &[nothing]);
    assert!(answer.code == 0 && !answer.stdout.contains("throughput"), "{}", answer.exchange());
}

/// Every three hundredth iteration is a collection. Over one iteration, none of three processes would see one.
#[test]
fn collections_and_their_time_are_means_over_many_iterations_with_intervals() {
    let collects = r#"{"name":"collects","cost":1000,"pause":[300,900000]}"#;
    let never = r#"{"name":"never","cost":1000,"pause":[1000000000,1]}"#;
    let answer = bench(&Place::new(), &["--no-store", "--json"], &[collects, never]).json();
    let of = |arm: usize, field: &str| at(&answer, &format!("/arms/{arm}/metrics/{field}")).clone();
    for (key, truth) in [("gc.time", 3000.0), ("gc.count", 1.0 / 300.0)] {
        let number = |field: &str| of(0, &format!("{key}/{field}")).as_f64().unwrap_or(f64::NAN);
        let (mean, low, high) = (number("estimate"), number("interval/0"), number("interval/1"));
        assert!((mean / truth - 1.0).abs() < 0.1, "{key}: {mean}");
        assert!(low <= truth && high >= truth && low > 0.7 * truth, "{key}: {low} to {high}");
    }
    let why = of(2, "gc.time/absent");
    assert!(why.as_str().is_some_and(|why| why.starts_with("there was none in batches of ")), "{why}");
    assert_eq!((of(2, "gc.count/estimate"), of(2, "gc.count/quality")), (0.0.into(), "near".into()));
}

/// A short budget leaves batches of one or two collections. As the program always does the same, most batches have equally
/// many, and these alone would give an interval without width beside the truth.
#[test]
fn the_interval_of_few_collections_holds_one_more_and_one_less() {
    let periods = [2800, 3300, 3900, 4500];
    let case = |every: &u32| format!(r#"{{"name":"c{every}","cost":1000,"pause":[{every},90000]}}"#);
    let cases = periods.each_ref().map(case);
    let options = ["--no-store", "--quick", "--budget", "0.2s", "--json"];
    let answer = bench(&Place::new(), &options, &cases.each_ref().map(String::as_str)).json();
    for (arm, every) in periods.iter().enumerate() {
        for (key, one) in [("gc.count", 1.0), ("gc.time", 90_000.0)] {
            let path = format!("/arms/{}/metrics/{key}", 2 * arm);
            let of = |field: &str| at(&answer, &format!("{path}{field}")).as_f64().unwrap_or(f64::NAN);
            let (low, high, event) = (of("/interval/0"), of("/interval/1"), of(".resolution/estimate"));
            let truth = one / f64::from(*every);
            assert!(event > 0.1 * truth && event < truth, "{key} of {every}: {event}");
            assert!(low <= truth && truth <= high, "{key} of {every}: {low} to {high}, not {truth}");
            assert!(high - low <= 6.0 * event, "{key} of {every}: {low} to {high}, by {event}");
        }
    }
}

/// A program that starts so slowly is counted in one process only.
#[test]
fn collections_of_which_too_few_batches_were_read_have_a_remark() {
    let case = r#"{"name":"collects","cost":1000,"pause":[300,900000]}"#;
    let options = ["--no-store", "--budget", "0.2s"];
    let remark = "gc.count, gc.time of ‘collects’ have fewer than 6 readings, which give no interval";
    let slow = bench(&Place::new(), &options, &["--sleep", "1", case]);
    assert!(slow.code == 0 && slow.unwrapped().contains(remark), "{}", slow.exchange());
    let fast = bench(&Place::new(), &options[..1], &[case]);
    assert!(!fast.unwrapped().contains("fewer than"), "{}", fast.exchange());
}

/// A body leaves cycles that only the collector frees. Python itself counts how often it then collects.
#[test]
fn collections_of_python_are_as_many_as_it_counts() {
    let place = Place::new();
    let body = "
import gc
def body():
    for _ in range(20):
        cycle = []
        cycle.append(cycle)
";
    let suite = "
import scruple_bench
from body import body
scruple_bench.bench('cycles')(body)
scruple_bench.main()
";
    let count = "
from body import body, gc
count = lambda: sum(generation['collections'] for generation in gc.get_stats())
before = count()
for _ in range(70000): body()
print((count() - before) / 70000)
";
    place.write("body.py", body);
    place.write("suite.py", suite);
    let sdk = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/python/scruple_bench.py");
    std::fs::copy(sdk, place.file("scruple_bench.py")).expect("a copy");
    let python = std::process::Command::new("python3").args(["-c", count]).current_dir(place.path()).output();
    let text = String::from_utf8(python.expect("Python").stdout).expect("a text");
    let truth: f64 = text.trim().parse().expect("a number");
    assert!(truth > 0.0 && truth < 0.1, "{truth}");
    let words = ["bench", "--no-store", "--count-only", "--budget", "60s", "--json", "--"];
    let answer = place.run(words.iter().chain(&["python3", "suite.py"])).json();
    let end = |at_end: usize| {
        let path = format!("/arms/0/metrics/gc.count/interval/{at_end}");
        at(&answer, &path).as_f64().unwrap_or(f64::NAN)
    };
    // A batch begins and ends between two collections, so it may have one more or one less of about ten.
    let (low, high) = (end(0), end(1));
    assert!(0.7 * truth < low && low <= truth, "{low} to {high}, not {truth}");
    assert!(truth <= high && high < 1.3 * truth, "{low} to {high}, not {truth}");
}

#[test]
fn a_first_answer_names_what_it_knows_to_no_better_than_two_percent() {
    let text = |options: &[&str]| {
        let place = Place::new();
        let file = place.file("seen").display().to_string();
        // All batches of the first process take ten times as long.
        let late = |name: &str| format!(r#"{{"name":"{name}","cost":5,"late":"{file}"}}"#);
        let cases = [r#"{"name":"fine","cost":5}"#, &late("late"), &late("later")];
        bench_freely(&place, &[&["--no-store", "--seed", "7"], options].concat(), &cases).unwrapped()
    };
    let quick = text(&["--quick"]);
    let remark =
        "the intervals of ‘late’, ‘later’ are wider than ±2 % in this first answer; without --quick,";
    assert!(quick.contains(remark), "{quick}");
    let whole = text(&[]);
    assert!(!whole.contains("first answer"), "{whole}");
}

#[test]
fn two_cases_of_one_name_are_refused() {
    assert_snapshot!(bench(&Place::new(), &["--no-store"], &[GOOD, GOOD]).exchange(), @r"
    exit 4
    --- stderr
    error: cannot bench ‘/usr/bin/python3’: the answer to ‘cases’ is not in the protocol: two cases are called ‘good’
    ");
}

#[test]
fn a_parameter_cannot_break_the_table() {
    let odd = r#"{"name":"odd","cost":5,"params":{"n":"a\u001b[31mb\nc"}}"#;
    assert_snapshot!(bench(&Place::new(), &["--no-store"], &[odd]).exchange(), @r"
    exit 0
    --- stdout
    1 case · 3 fresh processes · seed 7

                             net      ±      raw     tare  allocated
      odd (n=a�[31mb�c)  5.00 ns  0.4 %  7.00 ns  2.00 ns        0 B
    ");
}

#[test]
fn a_counter_that_goes_in_steps_is_counted_over_many_iterations() {
    let iota =
        r#"{"name":"iota","cost":100,"bytes":1632,"step":4096,"budgets":{"alloc.bytes":{"max":1600}}}"#;
    let little = r#"{"name":"little","cost":100,"budgets":{"alloc.bytes":{"max":0}}}"#;
    let none = r#"{"name":"none","cost":100,"budgets":{"alloc.bytes":{"max":100}}}"#;
    let answer = bench(&Place::new(), &["--no-store", "--check"], &[iota, little, none]);
    assert_eq!(answer.code, 1, "{}", answer.exchange());
    let limits: Vec<&str> = answer.stdout.lines().filter(|line| line.starts_with("Limit")).collect();
    assert!(limits[0].contains("EXCEEDED by ‘iota’, which has 1.63 kB"), "{}", answer.exchange());
    assert!(limits[1].contains("can’t tell for ‘little’"), "{}", answer.exchange());
    assert!(limits[2].contains("kept by ‘none’"), "{}", answer.exchange());
}

#[test]
fn a_tare_that_allocates_more_than_its_case_leaves_no_figure() {
    let odd = r#"{"name":"odd","cost":5,"bytes":0,"tare_bytes":32,"budgets":{"alloc.bytes":{"max":10}}}"#;
    let answer = bench(&Place::new(), &["--no-store", "--check"], &[odd]);
    assert_eq!(answer.code, 3, "{}", answer.exchange());
    let text = answer.unwrapped();
    assert!(text.contains("its tare has 32 B and the case itself 0 B"), "{}", answer.exchange());
}

#[test]
fn too_few_readings_for_an_interval_are_reported_with_what_helps() {
    let options = ["--no-store", "--seed", "7", "--processes", "1", "--blocks", "4"];
    let few = bench_freely(&Place::new(), &options, &[GOOD, r#"{"name":"other","cost":5}"#]);
    assert_eq!(few.code, 0, "{}", few.exchange());
    let text = few.unwrapped();
    let remark =
        "‘good’, ‘other’ have fewer than 6 readings, which give no net and no interval; raise --budget";
    assert!(text.contains(remark), "{}", few.exchange());
    let enough = bench_freely(&Place::new(), &[&options[..5], &["--blocks", "8"]].concat(), &[GOOD]);
    assert!(!enough.unwrapped().contains("fewer than"), "{}", enough.exchange());
}

/// Every five hundredth iteration takes a millisecond: of batches of a hundred, few have one.
#[test]
fn a_mean_above_the_median_of_the_batches_is_a_remark() {
    let refills = r#"{"name":"refills","cost":1000,"refill":[500,1000000]}"#;
    let answer = bench(&Place::new(), &["--no-store"], &[GOOD, refills]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let text = answer.unwrapped();
    let (_, mean) = text.split_once("an iteration of ‘refills’ takes ").unwrap_or_default();
    let (mean, median) = mean.split_once(" µs of processor time on average, but ").unwrap_or_default();
    assert!(mean.parse().is_ok_and(|mean: f64| (1.5..4.5).contains(&mean)), "{}", answer.exchange());
    assert!(median.starts_with("1.0"), "{}", answer.exchange());
    let even = bench(&Place::new(), &["--no-store"], &[GOOD, r#"{"name":"even","cost":1000}"#]);
    assert!(!even.unwrapped().contains("on average"), "{}", even.exchange());
}

#[test]
fn what_only_some_iterations_allocate_is_a_remark() {
    let queue = r#"{"name":"queue","cost":5,"bytes":72,"segment":840}"#;
    let answer = bench(&Place::new(), &["--no-store"], &[GOOD, queue]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let text = answer.unwrapped();
    assert!(text.contains("an iteration of ‘queue’ allocates 72 B, but "), "{}", answer.exchange());
    assert!(text.contains(" iterations in a row allocate 80 B each on average"), "{}", answer.exchange());
    let even =
        bench(&Place::new(), &["--no-store"], &[r#"{"name":"even","cost":5,"bytes":72,"segment":100}"#]);
    assert!(!even.unwrapped().contains("in a row"), "{}", even.exchange());
}

fn iterations(answer: &Answer, arm: usize) -> f64 {
    let figures = at(&answer.json(), &format!("/arms/{arm}/metrics/batch.iterations/readings")).clone();
    let figures = figures.as_array().cloned().unwrap_or_default();
    assert!(!figures.is_empty(), "{}", answer.exchange());
    figures.iter().filter_map(serde_json::Value::as_f64).fold(0.0, f64::max)
}

/// The numbers of iterations vary, but the time limit need not suffice for two iterations of a case.
#[test]
fn a_slow_case_runs_one_iteration_in_each_batch() {
    let slow = r#"{"name":"slow","cost":30000000}"#;
    let options =
        ["--no-store", "--json", "--seed", "7", "--time-only", "--blocks", "16", "--processes", "1"];
    assert_eq!(iterations(&bench_freely(&Place::new(), &options, &[slow]), 0), 1.0);
}

#[test]
fn a_batch_has_no_more_iterations_than_a_core_can_run() {
    let removed = r#"{"name":"removed","cost":0,"tare":0}"#;
    let answer =
        bench_freely(&Place::new(), &["--no-store", "--json", "--seed", "7", "--blocks", "4"], &[removed]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let most = iterations(&answer, 0).max(iterations(&answer, 1));
    assert!((1e6..=2e7).contains(&most), "{most}");
}

#[test]
fn a_tare_makes_no_more_inputs_than_its_case() {
    let sort =
        r#"{"name":"sort","cost":1000000,"tare":0.4,"per_iteration_input":true,"max_iterations":1000}"#;
    let answer = bench(&Place::new(), &["--no-store", "--json"], &[sort]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    assert!(iterations(&answer, 1) <= 2.0, "{}", iterations(&answer, 1));
}

#[test]
fn inputs_that_take_long_to_make_are_few() {
    let declared =
        r#"{"name":"slow","cost":100,"making":5,"per_iteration_input":true,"max_iterations":1000}"#;
    // Only its batches say that every iteration gets its own input.
    let late = r#"{"name":"late","cost":100,"making":5,"late_input":true}"#;
    let options = ["--no-store", "--json", "--seed", "7", "--processes", "1", "--blocks", "4"];
    for case in [declared, late] {
        let answer = bench_freely(&Place::new(), &options, &[case]);
        assert_eq!(answer.code, 0, "{}", answer.exchange());
        let most = iterations(&answer, 0).max(iterations(&answer, 1));
        // A busy machine makes the waits for a core uncertain; a batch without regard to its inputs has a thousand.
        assert!(most <= 30.0, "{most}: {case}");
    }
}

#[test]
fn an_iteration_that_starts_with_cold_caches_is_not_timed() {
    let cold = r#"{"name":"cold","cost":20000,"cold_iteration":20000}"#;
    let answer = bench(&Place::new(), &["--no-store", "--json", "--time-only"], &[cold]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let time = at(&answer.json(), "/arms/0/metrics/time.wall/estimate").as_f64().expect("a number");
    assert!((19_900.0..20_500.0).contains(&time), "{time}");
}

#[test]
fn code_that_was_compiled_after_the_calibration_runs_in_batches_of_the_usual_length() {
    let place = Place::new();
    let late = format!(
        r#"{{"name":"late","cost":98,"late":"{}"}}"#,
        place.write("asks", "").with_extension("no").display()
    );
    let answer = bench(&place, &["--no-store", "--json", "--time-only"], &["--language", "java", &late]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let all = at(&answer.json(), "/arms/0/metrics/batch.iterations/readings").clone();
    let of_process = |at: usize| all[12 * at].as_f64().expect("a number");
    // The jitter is at most half of the number, up or down.
    assert!(of_process(0) <= 150.0 && of_process(1) >= 500.0, "{all}");
    assert!((500.0..=1500.0).contains(&of_process(2)), "{all}");
}

#[test]
fn a_limit_in_the_configuration_is_for_a_case_that_there_is() {
    let place = Place::new();
    place.write("scruple.toml", "[limits]\n\"god.time.wall\" = { max = \"1 s\" }\n");
    assert_snapshot!(bench(&place, &["--no-store", "--check"], &[GOOD]).exchange(), @r"
    exit 2
    --- stderr
    error: scruple.toml has a limit ‘god:time.wall<=1 s’, but there is no case ‘god’: `scruple bench --list` shows the names
    ");
    place.write("scruple.toml", "[budgets]\n\"good.time.wall\" = { max = \"1 s\" }\n");
    let other = r#"{"name":"other","cost":5}"#;
    let answer = bench(&place, &["--no-store", "--check", "--filter", "other"], &[GOOD, other]);
    assert_eq!(answer.code, 0, "{}", answer.exchange());
}

#[test]
fn a_case_that_one_program_lacks_has_no_counterpart() {
    let place = Place::new();
    let words = |cases: &[&str]| fake_line(&place, cases);
    let (lost, new) = (r#"{"name":"lost","cost":7}"#, r#"{"name":"new","cost":7}"#);
    let answer = bench(&place, &["--no-store", "--against", &words(&[GOOD, lost])], &[GOOD, new]);
    let ends = |name: &str, end: &str| {
        answer.stdout.lines().any(|line| line.trim_start().starts_with(name) && line.ends_with(end))
    };
    assert!(ends("good @old", "reference"), "{}", answer.exchange());
    assert!(
        ends("lost @old", "no counterpart") && ends("new @new", "no counterpart"),
        "{}",
        answer.exchange()
    );
    bench(&place, &["--label", "before"], &[GOOD, lost]);
    let answer = bench(&place, &["--baseline", "before"], &[GOOD, new]);
    let rows: Vec<&str> = answer.stdout.lines().filter(|line| line.ends_with("no counterpart")).collect();
    assert_eq!(rows.len(), 1, "{}", answer.exchange());
    assert!(rows[0].trim_start().starts_with("new "), "{}", answer.exchange());
}

#[test]
fn a_net_that_noise_hides_is_not_called_below_resolution() {
    let jumpy = r#"{"name":"jumpy","cost":10,"tare":59,"jumps":true}"#;
    let answer = bench(&Place::new(), &["--no-store"], &[jumpy]);
    assert!(!answer.stdout.contains("compiler"), "{}", answer.exchange());
    assert!(
        answer.stdout.contains("Can’t tell the net cost of ‘jumpy’: the readings allow anything from 0"),
        "{}",
        answer.exchange()
    );
}

#[test]
fn a_case_may_ask_for_its_first_iteration_to_be_counted() {
    let value = r#"{"name":"value","cost":5,"once":4728,"first":true}"#;
    let later = r#"{"name":"later","cost":5,"once":4728}"#;
    let answer = bench(&Place::new(), &["--no-store", "--json"], &[value, later]);
    let bytes =
        |arm: usize| at(&answer.json(), &format!("/arms/{arm}/metrics/alloc.bytes/estimate")).as_f64();
    assert_eq!((bytes(0), bytes(2)), (Some(4728.0), Some(0.0)), "{}", answer.exchange());
}

/// Go keeps objects to use again for each processor. The first iteration after a request allocates them anew if the
/// program was moved while it waited for the request.
#[test]
fn what_an_iteration_allocates_only_after_a_wait_is_not_counted() {
    let pool = r#"{"name":"pool","cost":20000,"bytes":16,"moved":4096}"#;
    for options in [&["--no-store", "--json"][..], &["--no-store", "--json", "--count-only"]] {
        let answer = bench(&Place::new(), options, &[GOOD, pool]);
        let bytes = at(&answer.json(), "/arms/2/metrics/alloc.bytes/estimate").as_f64();
        assert_eq!(bytes, Some(16.0), "{}", answer.exchange());
        assert!(!answer.stdout.contains("in a row"), "{}", answer.exchange());
    }
}

/// Go counts a block of 16 bytes when the first of two objects of eight bytes takes it.
#[test]
fn objects_that_share_a_block_are_counted_as_the_part_that_they_take() {
    let small = r#"{"name":"small","cost":5,"bytes":8,"shared":16}"#;
    let once = r#"{"name":"once","cost":5,"bytes":8,"shared":16,"once":4096}"#;
    let answer = bench(&Place::new(), &["--no-store", "--json"], &[small, once]);
    for arm in [0, 2] {
        let bytes = at(&answer.json(), &format!("/arms/{arm}/metrics/alloc.bytes/estimate")).as_f64();
        assert_eq!(bytes, Some(8.0), "{}", answer.exchange());
    }
    let remark = "the first iteration of ‘once’ allocates 4,104 B more than later ones";
    assert!(answer.json().to_string().contains(remark), "{}", answer.exchange());
}

/// The possible error of a count depends on the length of the batches, and is no figure of the case.
#[test]
fn possible_errors_of_figures_are_not_compared() {
    let paused = |every: u32| format!(r#"{{"name":"paused","cost":100,"pause":[{every},1000]}}"#);
    let place = Place::new();
    let old = fake_line(&place, &[&paused(300)]);
    let options = ["--no-store", "--json", "--count-only", "--against", &old];
    let run = bench_freely(&place, &options, &[&paused(500)]).json();
    let metrics: Vec<&str> = run["comparisons"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["metric"].as_str())
        .collect();
    assert!(metrics.contains(&"gc.count"), "{metrics:?}");
    assert!(at(&run, "/arms/0/metrics").get("gc.count.resolution").is_some(), "{run}");
    assert!(!metrics.iter().any(|key| key.ends_with(".resolution")), "{metrics:?}");
}

#[test]
fn bytes_outside_of_the_heap_of_javascript_have_a_column_if_there_are_any() {
    let table = |bytes: u32| {
        let case = format!(r#"{{"name":"array","cost":5,"outside":{bytes}}}"#);
        bench(&Place::new(), &["--no-store"], &[&case]).stdout
    };
    let (some, none) = (table(80_000), table(0));
    assert!(some.contains("outside heap") && some.contains("≈80,000 B"), "{some}");
    assert!(!none.contains("outside heap"), "{none}");
}

/// Optimised code may not create objects that it does not need.
#[test]
fn allocations_of_compiled_code_are_those_of_optimised_code() {
    let case = r#"{"name":"point","cost":10,"cold":12,"cold_bytes":24}"#;
    let bytes = |words: &[&str]| {
        let answer = bench(&Place::new(), words, &["--language", "java", case]);
        at(&answer.json(), "/arms/0/metrics/alloc.bytes/estimate").as_f64()
    };
    assert_eq!(bytes(&["--no-store", "--json"]), Some(0.0));
    assert_eq!(bytes(&["--no-store", "--json", "--count-only"]), Some(0.0));
}

#[test]
fn counts_that_differ_from_process_to_process_are_not_exact() {
    let case = |more: &str| format!(r#"{{"name":"parse","cost":5,"bytes":100{more}}}"#);
    let quality = |case: &str| {
        let run = bench(&Place::new(), &["--no-store", "--json"], &[case]).json();
        at(&run, "/arms/0/metrics/alloc.bytes/quality").clone()
    };
    assert_eq!(quality(&case("")), "exact");
    assert_ne!(quality(&case(r#","drawn":"draws""#)), "exact");
    let place = Place::new();
    let old = fake_line(&place, &[&case("")]);
    let options = ["--no-store", "--json", "--against", &old];
    let run = bench(&place, &options, &[&case(r#","drawn":"draws""#)]).json();
    let comparisons = run["comparisons"].as_array().expect("comparisons");
    let one = comparisons.iter().find(|one| one["metric"] == "alloc.bytes").expect("judged");
    assert_ne!(one["verdict"], "different", "{one}");
}

#[test]
fn a_batch_that_was_interrupted_while_iterations_are_found_makes_no_others_short() {
    let stalls = r#"{"name":"zoo/ant","cost":5,"stall":20000000}"#;
    let run = bench(&Place::new(), &["--no-store", "--json"], &[stalls]).json();
    for (arm, cost) in [(0, 7.0), (1, 2.0)] {
        let iterations = at(&run, &format!("/arms/{arm}/metrics/batch.iterations/estimate"));
        let length = iterations.as_f64().expect("a number") * cost;
        assert!((50_000.0..200_000.0).contains(&length), "arm {arm}: batches of {length} ns");
    }
}
