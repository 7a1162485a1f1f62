//! Loads that are replayed from a script, so that every byte of an answer is known.

mod costs;
mod delayed;
mod exports;
mod memory;
mod pages;
pub mod planted;
mod refusals;
mod scenarios;
pub mod servers;

use crate::support::{Place, at};
use insta::assert_snapshot;
use serde_json::{Value, json};

/// A window of 1000 requests in a second: 900 take `us` microseconds, 95 twice and 5 ten times as long.
pub fn window(us: u64) -> Value {
    json!({
        "span": 1000,
        "response": [[us, 900], [2 * us, 95], [10 * us, 5]],
        "service": [[us, 900], [2 * us, 95], [8 * us, 5]],
        "lag": [[2, 995], [2 * us, 5]],
    })
}

/// Ten windows that differ by at most 9 % in a fixed order.
pub fn windows(us: u64) -> Vec<Value> {
    (0..10).map(|i| window(us + us * (i * 7 % 10) / 100)).collect()
}

pub fn script(place: &Place, arms: &[(&str, Vec<Value>)]) {
    let arms: serde_json::Map<String, Value> =
        arms.iter().map(|(name, windows)| ((*name).to_owned(), Value::Array(windows.clone()))).collect();
    place.write("load.json", json!({ "arms": arms }).to_string());
}

pub fn load<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut words =
        vec!["load", "http://127.0.0.1:9/", "--scripted", "load.json", "--rate", "1000", "--name", "new"];
    if !more.contains(&"--label") {
        words.push("--no-store");
    }
    words.extend(more);
    words
}

#[test]
fn a_load_is_a_table_of_latencies() {
    let place = Place::new();
    script(&place, &[("new", windows(200))]);
    assert_snapshot!(place.run(load(&["--label", "first"])).exchange(), @"
exit 0
--- stdout
new · open loop, 1,000 requests/s, 10 connections · 10 windows, 10.0 s · seed 1

                  p50        p90        p99      p99.9    longest
  response  210    µs  218    µs  436    µs    2.14 ms    2.18 ms
  service   210    µs  218    µs  436    µs    1.71 ms    1.74 ms
  lag         2.00 µs    2.00 µs    2.00 µs  428    µs  436    µs

  10,000 answered, 1,000/s · 0 failed
  generator: 0.2 % of its core, 2.00 µs per request; backlog at most 0

Stored as scripted-1 in store.db; `scruple show scripted-1` shows it again.
");
    assert_snapshot!(place.run(["show"]).exchange(), @"
    exit 0
    --- stdout
    1 server · 10 windows · seed 1

    response p50
      new         210.0 µs  [204.0, 216.1]  ▄▄▄ ▄ ▄▄ ▄▄█
    response p99
      new           436 µs  [214, 436]      ▄▄▄ ▄ ▄▄ ▄▄█
    rate
      new  1000 requests/s  [1000, 1000]          █
    errors
      new             0.00
    ");
}

/// Ticks fall into the same moments of requests that are due every millisecond, so the division is no estimate.
#[test]
fn even_requests_leave_user_and_system_time_unknown() {
    let place = Place::new();
    let windows: Vec<Value> = (0..10)
        .map(|i| {
            let requests = [1000, 3000, 2000][i % 3];
            let grown = json!({"time.cpu": requests * 30_000, "time.user": requests * 30_000, "time.sys": 0});
            json!({"span": requests, "response": [[200, requests]], "grown": grown, "resident": 10_000_000})
        })
        .collect();
    script(&place, &[("new", windows)]);
    for (rate, known) in [("1000", false), ("poisson:1000", true)] {
        let answer = place.run(rated(rate, &["--json"]));
        let json = answer.json();
        let metrics = &json["arms"][0]["metrics"];
        for key in ["request.user", "request.sys"] {
            assert_eq!(metrics[key]["estimate"].is_number(), known, "{rate} {key}: {}", metrics[key]);
            let why = metrics[key]["absent"].as_str().unwrap_or_default();
            assert_eq!(why.contains("clock ticks"), !known, "{rate} {key}: {}", metrics[key]);
        }
        assert!(metrics["request.cpu"]["estimate"].is_number(), "{rate}");
        let shown = place.run(rated(rate, &[])).stdout;
        assert_eq!(shown.contains("user: absent"), !known, "{shown}");
    }
}

fn rated<'a>(rate: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let words = [
        "load",
        "http://127.0.0.1:9/",
        "--scripted",
        "load.json",
        "--name",
        "new",
        "--rate",
        rate,
        "--no-store",
    ];
    words.iter().chain(&["--warmup", "off"]).chain(more).copied().collect()
}

#[test]
fn costs_are_lines_over_windows_and_a_leak_is_named() {
    let place = Place::new();
    let mut resident = 10_000_000;
    let windows: Vec<Value> = (0..10)
        .map(|i| {
            let requests = [1000, 3000, 2000][i % 3];
            resident += requests * 100;
            json!({
                "span": requests,
                "response": [[200, requests]],
                "grown": {"time.cpu": 500_000 + requests * 30_000, "faults.minor": 0, "switches.voluntary": requests},
                "resident": resident,
            })
        })
        .collect();
    script(&place, &[("new", windows)]);
    assert_snapshot!(place.run(load(&["--warmup", "off"])).exchange(), @"
    exit 0
    --- stdout
    new · open loop, 1,000 requests/s, 10 connections · 10 windows, 19.0 s · seed 1

                   p50     p90     p99   p99.9  longest
      response  200 µs  200 µs  200 µs  200 µs   200 µs
      service   200 µs  200 µs  200 µs  200 µs   200 µs

      19,000 answered, 1,000/s · 0 failed
      generator: 0.2 % of its core, 2.00 µs per request; backlog at most 0

      Cost of a request (open loop, 1,000 requests/s)
        vol. switches   1       [1, 1]
        cpu            30.0 µs  [30.0 µs, 30.0 µs] and 500 µs per window
        memory, resident: 100 kB per 1,000 requests [100 kB, 100 kB], and goes on

    ! the server’s memory grows with the requests and does not stop: a leak, or a heap that still fills.
      Load it while ‘scruple inspect memory -i -- timeout -s INT 60 SERVER’ runs, which then shows the
      code that keeps it
    ");
    let answer = place.run(load(&["--warmup", "off", "--json"])).json();
    assert_eq!(at(&answer, "/load/servers/0/cost/2/counter"), "time.cpu");
    let each = at(&answer, "/load/servers/0/cost/2/each/value").as_f64().expect("a number");
    assert!((each - 30_000.0).abs() < 1e-6, "{each}");
    assert_eq!(at(&answer, "/load/servers/0/memory/0/leak"), true);
}

#[test]
fn two_servers_are_compared_by_all_of_their_requests() {
    let place = Place::new();
    script(&place, &[("old", windows(200)), ("new", windows(260))]);
    let against =
        load(&["--against", "old=http://127.0.0.1:10/", "--metrics", "load.p50,load.p99,load.rate"]);
    assert_snapshot!(place.run(&against).exchange(), @r#"
    exit 0
    --- stdout
    2 servers in turn, 10 turns of 1.00 s each · open loop, 1,000 requests/s, 10 connections · 10
    windows, 10.0 s · seed 1

                          p50        p90        p99      p99.9    longest
      old response  210    µs  218    µs  436    µs    2.14 ms    2.18 ms
      old service   210    µs  218    µs  436    µs    1.71 ms    1.74 ms
      old lag         2.00 µs    2.00 µs    2.00 µs  428    µs  436    µs
      new response  273    µs  283    µs  566    µs    2.78 ms    2.83 ms
      new service   273    µs  283    µs  566    µs    2.22 ms    2.27 ms
      new lag         2.00 µs    2.00 µs    2.00 µs  556    µs  566    µs

    old
      10,000 answered, 1,000/s · 0 failed
      generator: 0.2 % of its core, 2.00 µs per request; backlog at most 0

    new
      10,000 answered, 1,000/s · 0 failed
      generator: 0.2 % of its core, 2.00 µs per request; backlog at most 0

    response p50
      old         210.0 µs  [204.0, 216.1]                          reference
      new         273.2 µs  [265.2, 280.1]  +30.0 % [+29.3, +31.0]  slower
    response p99
      old           436 µs  [214, 436]                              reference
      new           566 µs  [278, 566]      1.30 × [0.52, 3.22]     can’t tell
    rate
      old  1000 requests/s  [1000, 1000]                            reference
      new  1000 requests/s  [1000, 1000]    0.00 % [0.00, 0.00]     same

    ‘new’ takes 30.0 % more median response time than ‘old’ (99.4 % sure: +29.3 % to +31.0 %, 10 turns).
    "#);
    let same = ["--against", "old=http://127.0.0.1:10/", "--metrics", "load.p50"];
    script(&place, &[("old", windows(200)), ("new", windows(200))]);
    let answer = place.run(load(&same));
    assert!(answer.stdout.contains("take the same median response time"), "{}", answer.exchange());
}

#[test]
fn more_turns_need_more_windows_and_a_longer_load() {
    let place = Place::new();
    let uneven = (0..7).map(|turn| window(if turn % 3 == 0 { 260 } else { 170 })).collect();
    script(&place, &[("old", windows(200)), ("new", uneven)]);
    let words = ["--against", "old=:10", "--metrics", "load.p50", "--warmup", "off"];
    let answer = place.run(load(&words));
    let text = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let number = |before: &str| {
        let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("{}", answer.exchange()));
        rest.split(' ').next().and_then(|word| word.parse::<u64>().ok()).expect("a number")
    };
    let (more, times) = (number("fits the readings; about "), number(" and a load "));
    // Ten seconds had ten turns of two windows. The additional turns have the same length, so the load lasts longer in
    // proportion.
    assert_eq!(number("(--windows "), 2 * (10 + more));
    assert!(more > 0 && times == (10 + more).div_ceil(10), "{}", answer.exchange());
}

#[test]
fn a_rate_that_is_not_kept_up_with_is_compared_by_what_was_answered() {
    let place = Place::new();
    let mut slow = window(260);
    slow["behind"] = 3000.into();
    script(&place, &[("old", windows(200)), ("new", vec![slow])]);
    let words =
        ["--against", "old=:10", "--metrics", "load.rate", "--warmup", "off", "--export", "page.html"];
    let answer = place.run(load(&words));
    assert!(
        answer.stdout.contains("10,000 answered, 250/s of 1,000/s that were due"),
        "{}",
        answer.exchange()
    );
    assert!(answer.stdout.contains("fewer requests per second than ‘old’"), "{}", answer.exchange());
    assert!(place.read("page.html").contains("250/s of 1,000/s"));
    let json = place.run(load(&words).into_iter().chain(["--json"])).json();
    assert_eq!(at(&json, "/load/servers/1/rate"), 250.0);
    assert_eq!(at(&json, "/load/servers/1/behind"), 30_000_000_000_u64);
    assert_eq!(at(&json, "/arms/1/metrics/load.rate/estimate"), 250.0);
}

#[test]
fn a_rate_that_a_late_generator_hides_is_between_two_rates() {
    let place = Place::new();
    let mut late = window(260);
    late["behind_most"] = 3000.into();
    script(&place, &[("new", vec![late])]);
    let words = ["--warmup", "off", "--export", "page.html"];
    let answer = place.run(load(&words));
    assert!(answer.stdout.contains("10,000 answered, 250 to 1,000/s ·"), "{}", answer.exchange());
    assert!(place.read("page.html").contains("250 to 1,000"));
    let json = place.run(load(&["--warmup", "off", "--json"])).json();
    assert_eq!(at(&json, "/load/servers/0/rate"), 1000.0);
    assert_eq!(at(&json, "/load/servers/0/least_rate"), 250.0);
}

#[test]
fn a_window_that_ends_in_a_pause_is_no_server_that_falls_behind() {
    let place = Place::new();
    let mut late = window(200);
    late["behind"] = 50.into();
    late["doubts"] = json!([{"code": "rate-not-met", "voids": false, "text": "the server fell behind"}]);
    let fell_behind = |place: &Place| place.run(load(&["--warmup", "off"])).stdout.contains("fell behind");
    let nine = || (0..9).map(|_| window(200));
    script(&place, &[("new", nine().chain([late.clone()]).collect())]);
    assert!(!fell_behind(&place));
    script(&place, &[("new", vec![late])]);
    assert!(fell_behind(&place));
}

#[test]
fn limits_decide_the_exit_code() {
    let place = Place::new();
    script(&place, &[("new", windows(200))]);
    let code = |limit: &str| place.run(load(&["--limit", limit])).code;
    assert_eq!(code("load.p50<1ms"), 0);
    assert_eq!(code("load.p50<100us"), 1);
    assert_eq!(code("load.p50<205us"), 3);
    assert_eq!(code("load.errors<0.1%"), 0);
    assert_eq!(code("load.p50"), 2);
}

#[test]
fn failures_are_named_by_class_and_end_with_code_4() {
    let place = Place::new();
    let mut bad = window(200);
    bad["failures"] = json!({"timed-out": 3, "bad-status": 7, "reset": 1});
    script(&place, &[("new", vec![bad])]);
    assert_snapshot!(place.run(load(&["--warmup", "off"])).exchange(), @"
    exit 4
    --- stdout
    new · open loop, 1,000 requests/s, 10 connections · 10 windows, 10.0 s · seed 1

                      p50        p90        p99      p99.9    longest
      response  200    µs  200    µs  400    µs    2.00 ms    2.00 ms
      service   200    µs  200    µs  400    µs    1.60 ms    1.60 ms
      lag         2.00 µs    2.00 µs    2.00 µs  400    µs  400    µs

      10,000 answered, 1,000/s · 110 failed (1.1 %)
        10 the connection or the stream was reset (reset)
        30 no answer in time (timed-out)
        70 an answer with a bad status (bad-status)
      generator: 0.2 % of its core, 2.00 µs per request; backlog at most 0

    --- stderr
    error: 110 of 10,110 requests to ‘new’ failed (-i accepts that; --limit 'load.errors<1%' says how many may)
    ");
    assert_eq!(place.run(load(&["-i"])).code, 0);
    assert_eq!(place.run(load(&["--limit", "load.errors<5%"])).code, 0);
    assert_eq!(place.run(load(&["--limit", "load.errors<0.5%"])).code, 1);
}

#[test]
fn windows_in_which_the_generator_was_late_are_void_and_their_costs_are_not() {
    let place = Place::new();
    let late = json!({"code": "generator-late", "voids": true, "text": "the generator itself was late"});
    let mut void = window(9000);
    void["doubts"] = json!([late]);
    void["grown"] = json!({"time.cpu": 50_000_000});
    let mut good = window(200);
    good["grown"] = json!({"time.cpu": 30_000_000});
    script(&place, &[("new", vec![void.clone(), good.clone(), void.clone(), good])]);
    let answer = place.run(load(&["--windows", "4", "--json"]));
    let json = answer.json();
    assert_eq!(at(&json, "/load/servers/0/void"), 2);
    assert_eq!(at(&json, "/arms/0/metrics/load.p50/n"), 2);
    assert_eq!(at(&json, "/arms/0/metrics/request.cpu/n"), 4);
    assert_eq!(answer.code, 0);
    // The costs that contain void windows are marked wherever they are shown.
    let included = "the costs of a request include 2 void windows of 4";
    assert!(at(&json, "/warnings").to_string().contains(included), "{}", answer.exchange());
    let answer = place.run(load(&["--windows", "4", "--export", "page.html"]));
    assert!(answer.stdout.contains("· 2 of 4 windows are VOID"), "{}", answer.exchange());
    assert!(place.read("page.html").matches(included).count() >= 2, "a remark, and a line at the table");
    script(&place, &[("new", vec![void])]);
    let answer = place.run(load(&["--windows", "4", "--limit", "load.p99<1s"]));
    assert_eq!(answer.code, 3, "{}", answer.exchange());
    for words in ["VOID", "load.p99 was not weighed: every window is void"] {
        assert!(answer.stdout.contains(words), "{}", answer.exchange());
    }
    assert!(answer.stderr.contains("every window of ‘new’ is void"), "{}", answer.exchange());
}

#[test]
fn void_windows_are_counted_for_each_server_and_break_its_curves() {
    let place = Place::new();
    let mut void = window(9000);
    void["doubts"] =
        json!([{"code": "generator-late", "voids": true, "text": "the generator itself was late"}]);
    let good = window(200);
    let new = vec![good.clone(), good.clone(), void.clone(), good.clone(), good.clone()];
    let old = vec![good.clone(), good, void.clone(), void, window(200)];
    script(&place, &[("new", new), ("old", old)]);
    let words = ["--windows", "5", "--warmup", "off", "--against", "old=:10", "--export", "page.html"];
    let answer = place.run(load(&words));
    let header = answer.stdout.lines().take(2).collect::<Vec<_>>().join(" ");
    assert!(header.contains("3 of 5 windows of ‘old’ and 4 of 5 windows of ‘new’, 5.00 s"), "{header}");
    let page = place.read("page.html");
    for (server, arm, lonely) in [("new", "a1", 0), ("old", "a0", 1)] {
        let head = format!("<h3>{server} over the run</h3>");
        let course = page.split_once(&head).expect("a course").1.split_once("</figure>").expect("its end").0;
        let curve = course.split_once(&format!("<path class=\"curve {arm}\"")).expect("a curve").1;
        let path = curve.split_once(" d=\"").expect("a path").1.split('"').next().expect("its end");
        // Both curves have two windows before the gap. After it, `new` has two windows and `old` has one, which is
        // drawn as a point.
        assert_eq!(path.matches('M').count(), 2, "{course}");
        assert_eq!(course.matches("<use ").count(), lonely, "{course}");
    }
}

#[test]
fn a_server_that_goes_away_ends_the_load_and_is_shown() {
    let place = Place::new();
    let mut gone = window(200);
    gone["gone"] = true.into();
    gone["failures"] = json!({"refused": 40});
    script(&place, &[("new", vec![window(200), gone.clone()])]);
    let answer = place.run(load(&["--json"]));
    assert_eq!(answer.code, 4, "{}", answer.exchange());
    assert_eq!(at(&answer.json(), "/load/servers/0/windows"), 2);
    assert!(answer.stderr.contains("accepted no more connections"), "{}", answer.exchange());
    gone["ended"] = "was ended by signal 11 (SIGSEGV)".into();
    script(&place, &[("new", vec![window(200), gone])]);
    let answer = place.run(load(&["--json"]));
    assert_eq!(at(&answer.json(), "/load/servers/0/ended"), "was ended by signal 11 (SIGSEGV)");
    assert!(answer.stderr.contains("‘new’ was ended by signal 11 (SIGSEGV)"), "{}", answer.exchange());
}

#[test]
fn stored_loads_are_compared_like_any_runs() {
    let place = Place::new();
    script(&place, &[("new", windows(200))]);
    assert_eq!(place.run(load(&["--label", "before", "--seed", "1"])).code, 0);
    script(&place, &[("new", windows(300))]);
    assert_eq!(place.run(load(&["--label", "after", "--seed", "2"])).code, 0);
    let answer = place.run(["compare", "before", "after", "--metrics", "load.p50,load.rate"]);
    assert_snapshot!(answer.exchange(), @r#"
    exit 0
    --- stdout
    1 server · 10 windows of each run · seed 2

    The runs were taken 0 seconds apart, in environments without recorded differences.

    response p50
      new @before         210.0 µs  [204.0, 216.1]  █▆                                    reference
      new @after          315.1 µs  [306.2, 324.1]           ▄▅█  +50.0 % [+41.7, +58.9]  slower
    rate
      new @before  1000 requests/s  [1000, 1000]          █                               reference
      new @after   1000 requests/s  [1000, 1000]          █       0.00 % [0.00, 0.00]     same

    ‘new @after’ takes 50.0 % more median response time than ‘new @before’ (99.4 % sure: +41.7 % to
    +58.9 %, 10 turns).
    ! the two runs were not taken side by side: whatever else changed on the machine in between is part
      of the difference
    "#);
}

#[test]
fn servers_that_cannot_be_loaded_are_reported_beforehand() {
    let place = Place::new();
    let mut errors = String::new();
    let cases: [&[&str]; 8] = [
        &["load", "ftp://example/"],
        &["load", ":99999"],
        &["load", ":8080", "--rate", "fast"],
        &["load", ":8080", "--rate", "1..2"],
        &["load", ":8080", "--windows", "0"],
        &["load", ":8080", "--scenario", "missing.toml"],
        &["load", ":8080", "--name", "a", "--against", "a=:8081"],
        &["load", ":8080", "--slo", "p99"],
    ];
    for words in cases {
        errors += &place.run(words).exchange();
    }
    assert_snapshot!(errors, @"
    exit 2
    --- stderr
    error: ‘ftp’ is not a scheme that can be loaded: http, https, or unix:PATH are. ‘scruple run’ weighs a client of another protocol
    exit 2
    --- stderr
    error: ‘99999’ is not a port: a number from 1 to 65535 is expected
    exit 2
    --- stderr
    error: ‘fast’ is not a rate: give requests per second, such as 2000 or 2k
    exit 2
    --- stderr
    error: ‘1..2’ is a range, which only a search has: give one rate, or limits with --slo
    exit 2
    --- stderr
    error: zero windows have no requests: give --windows at least 1
    exit 2
    --- stderr
    error: cannot read ‘missing.toml’: No such file or directory (os error 2)
    exit 2
    --- stderr
    error: two servers are called ‘a’: give them different names, as in --against old=URL --name new
    exit 2
    --- stderr
    error: ‘p99’ is not a limit: write for instance p99<20ms, mean<5ms, max<1s or errors<0.1%
    ");
}
