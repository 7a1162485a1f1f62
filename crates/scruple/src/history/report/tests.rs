//! Tests of properties that the page has in every format.

use super::fixture::{JudgedHistory, WICKED, bare, long, rich, unread};
use super::{ChartOptions, ExplainedChange, ExplainedRow, HistoryReport, chart};
use crate::render::page::SectionPart;
use scruple_core::history::VersionState;
use scruple_core::unit::Unit;
use unicode_width::UnicodeWidthStr;

fn page(made: &JudgedHistory) -> HistoryReport<'_> {
    HistoryReport::of(&made.history, &made.judgement)
}

/// Returns a text as a terminal without colours shows it.
fn bare_text(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

const FORMS: [ChartOptions; 4] = [
    ChartOptions { linear: false, combined: false },
    ChartOptions { linear: true, combined: false },
    ChartOptions { linear: false, combined: true },
    ChartOptions { linear: true, combined: true },
];

/// Writes pages for visual inspection: `PAGES=folder cargo test -p scruple --bin scruple pages -- --ignored`.
#[test]
#[ignore = "writes files to look at"]
fn pages_to_look_at() {
    let folder = std::path::PathBuf::from(std::env::var("PAGES").expect("PAGES names a folder"));
    let write = |name: String, text: String| std::fs::write(folder.join(name), text).expect("written");
    for (name, made) in [("rich", rich()), ("300", long(300)), ("2000", long(2000)), ("1", long(1))] {
        let page = page(&made);
        write(format!("{name}.html"), page.html());
        write(format!("{name}.md"), page.markdown());
        write(format!("{name}.json"), page.json());
        write(format!("{name}.csv"), page.csv(None));
        for width in [60, 80, 200] {
            write(format!("{name}-{width}.txt"), page.terminal(width));
        }
        for options in FORMS {
            let form = format!(
                "{}{}",
                if options.linear { "lin" } else { "log" },
                if options.combined { "3" } else { "" }
            );
            write(format!("{name}-{form}.svg"), page.svg(options));
        }
    }
}

/// Returns all artificial histories that a page has to handle.
fn all() -> Vec<(&'static str, JudgedHistory)> {
    let mut failed = bare(3);
    failed.iter_mut().for_each(|version| version.state = VersionState::BuildFailed);
    let mut queued = bare(2);
    queued.iter_mut().for_each(|version| version.state = VersionState::Queued);
    let mut unjudged = rich();
    unjudged.judgement.series.clear();
    unjudged.judgement.break_even.clear();
    vec![
        ("rich", rich()),
        ("unjudged", unjudged),
        ("long", long(300)),
        ("one version", long(1)),
        ("none", unread(bare(0))),
        ("unread", unread(bare(3))),
        ("failed", unread(failed)),
        ("queued", unread(queued)),
    ]
}

/// Checks that tags close in the order in which they opened, and that the text between them has no bare `<`.
fn is_balanced(xml: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    // The selectors in a style element are not markup.
    let styled =
        xml.split_once("<style>").and_then(|(head, rest)| Some((head, rest.split_once("</style>")?.1)));
    let xml = styled.map_or(xml.to_owned(), |(head, tail)| format!("{head}{tail}"));
    for piece in xml.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').ok_or_else(|| format!("‘{piece}’ does not end"))?;
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap_or_default();
        if text.contains('>') || tag.matches('"').count() % 2 == 1 {
            return Err(format!("‘{piece}’ has more marks than one"));
        }
        if tag.starts_with('/') {
            let last = open.pop();
            if last != Some(name) {
                return Err(format!("{last:?} is closed by ‘{name}’"));
            }
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} stay open")) }
}

#[test]
fn every_history_has_every_form() {
    for (name, made) in all() {
        let page = page(&made);
        for options in FORMS {
            let svg = page.svg(options);
            assert_eq!(is_balanced(&svg), Ok(()), "{name} {options:?}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name} {options:?}");
        }
        assert!(page.html().ends_with("</html>\n"), "{name}");
        assert!(serde_json::from_str::<serde_json::Value>(&page.json()).is_ok(), "{name}");
        assert_eq!(page.csv(None).lines().count(), 1 + made.history.versions.len(), "{name}");
        assert!(page.csv_all().lines().all(|line| line.matches(',').count() >= 14), "{name}");
        assert!(page.markdown().starts_with("`winter` `v0.9..HEAD`"), "{name}");
        assert!(bare_text(&page.terminal(80)).starts_with("winter · v0.9..HEAD\n"), "{name}");
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for (name, made) in all() {
        for width in [40, 60, 80, 200] {
            let text = bare_text(&page(&made).terminal(width));
            let wide = text.lines().find(|line| line.width() > width);
            assert_eq!(wide, None, "{name} in {width} columns");
            assert_eq!(text.lines().find(|line| line.ends_with(' ')), None, "{name} in {width} columns");
        }
    }
}

#[test]
fn nothing_of_a_commit_is_markup_or_steers_a_terminal() {
    let mut made = rich();
    for version in &mut made.history.versions {
        version.title = WICKED.to_owned();
        version.author = WICKED.to_owned();
        version.tags = vec![WICKED.to_owned()];
        version.why = Some(WICKED.to_owned());
        version.log = Some(WICKED.to_owned());
    }
    made.history.repository = WICKED.to_owned();
    made.history.range = WICKED.to_owned();
    for series in &mut made.judgement.series {
        series.subject = WICKED.to_owned();
        series.changes.iter_mut().for_each(|change| change.accepted = Some(WICKED.to_owned()));
    }
    made.history.remote = Some("https://me:secret@github.com/example/winter".to_owned());
    let page = page(&made);
    let steers = |text: &str| text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}');
    let html = page.html();
    for text in [&html, &page.svg(FORMS[0]), &page.svg(FORMS[2])] {
        assert!(!text.contains("<script") && !steers(text));
    }
    assert!(html.contains("&lt;script&gt;"));
    assert!(FORMS.iter().all(|options| is_balanced(&page.svg(*options)).is_ok()));
    assert!(!html.contains("secret") && !page.json().contains("secret"));
    let markdown = page.markdown();
    assert!(!steers(&markdown) && !markdown.contains("`ticks`"));
    // Outside of code, the bracket of a tag must be an entity, and a name must not notify anybody.
    let outside: String = markdown.split('`').step_by(2).collect();
    assert!(!outside.contains('<') && !outside.replace("@&#8203;", "").contains('@'), "{outside}");
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    assert!(markdown.lines().filter(|line| line.starts_with('|')).all(|line| cells(line) == 8));
    let terminal = page.terminal(100);
    assert!(!terminal.contains("\u{1b}[31mred") && !steers(&bare_text(&terminal)));
}

#[test]
fn the_page_is_one_file_that_loads_nothing() {
    let html = page(&rich()).html();
    assert_eq!(html.matches("<link").count(), html.matches("<link rel=\"icon\" href=\"data:,\"").count());
    for foreign in ["<script", "src=", "@import", "url(", "<iframe", "<object"] {
        assert!(!html.contains(foreign), "{foreign}");
    }
    let addresses = |begins: &str| html.matches(&format!("href=\"{begins}")).count();
    let place = "https://github.com/example/winter";
    assert_eq!(addresses(&format!("{place}/compare/")), 6, "one for each event that matters");
    assert_eq!(addresses(&format!("{place}/commit/")), 35, "one for each version");
    let inside = addresses("#") + addresses("data:,");
    assert_eq!(addresses("") - inside, 41, "and no other");
}

#[test]
fn nothing_that_a_program_names_becomes_markup() {
    let mut made = rich();
    let wicked = "<script>alert(1)</script>";
    for series in &mut made.judgement.series {
        series.unit = Unit::from(wicked.to_owned());
        series.metric = format!("own.{wicked}");
        series.subject = wicked.to_owned();
    }
    let page = page(&made).showing(&["own.*".to_owned()]);
    assert!(!page.shown.is_empty());
    for text in [page.html(), page.svg(FORMS[0]), page.svg(FORMS[2])] {
        assert!(!text.contains("<script"), "{text}");
    }
}

#[test]
fn two_thousand_versions_fit_on_a_page() {
    let made = long(2000);
    let page = page(&made);
    let html = page.html();
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
    assert!(page.svg(FORMS[0]).len() < 1_000_000);
    let versions =
        page.model().sections.into_iter().find(|section| section.title == "Versions").expect("versions");
    let Some(SectionPart::Table(table)) = versions.parts.first() else { panic!("a table of versions") };
    assert_eq!(table.rows.len(), 2000);
}

#[test]
fn many_series_of_many_versions_fit_as_well() {
    let mut made = long(1000);
    let three = made.judgement.series.clone();
    for copy in 1..8 {
        let named = |mut series: scruple_core::history::Series| {
            series.subject = format!("serve {copy}");
            series
        };
        made.judgement.series.extend(three.iter().cloned().map(named));
    }
    let page = page(&made);
    assert_eq!(page.model().charts().len(), 24);
    let html = page.html();
    assert!(html.len() < 4_000_000, "{} bytes", html.len());
}

#[test]
fn metrics_can_be_chosen() {
    let made = rich();
    let page = page(&made).showing(&["alloc".to_owned()]);
    let text = bare_text(&page.terminal(80));
    assert!(text.contains("allocated") && !text.contains("wall  "), "{text}");
    assert_eq!(chart::all(&page, FORMS[0]).len(), 2);
    let text = bare_text(&page.showing(&["request.cpu".to_owned()]).terminal(80));
    assert!(text.contains("were not read at any version") && !text.contains("No version"), "{text}");
}

#[test]
fn logs_are_shown_where_somebody_has_read_them() {
    let made = rich();
    let mut page = page(&made);
    let path = made.history.versions[7].log.clone().expect("a log");
    page.logs.insert(path, "Src/Eval.hs:12:7: error:\n  Variable not in scope: <step>".to_owned());
    assert!(page.html().contains(
        "<pre tabindex=\"0\">Src/Eval.hs:12:7: error:\n  Variable not in scope: &lt;step&gt;</pre>"
    ));
}

#[test]
fn the_page_says_where_a_change_comes_from() {
    let made = rich();
    let mut page = page(&made);
    let at = made.history.versions[page.shown_events()[0].at].commit.clone();
    let row = ExplainedRow { function: "parse<T>".to_owned(), ..ExplainedRow::default() };
    let sentences = vec!["Most of it comes from parse<T>.".to_owned()];
    page.explained = vec![ExplainedChange { at, sentences, rows: vec![row], ..ExplainedChange::default() }];
    let html = page.html();
    assert!(html.contains(": Most of it comes from parse&lt;T&gt;."), "{html}");
    assert_eq!(html.matches("parse&lt;T&gt;").count(), 2, "in the sentence and in the table");
}

#[test]
fn json_points_at_what_it_holds() {
    let mut made = rich();
    made.judgement.series[3].changes[0].from = 0.0;
    made.judgement.series[3].changes[0].ratio = f64::INFINITY;
    let json: serde_json::Value = serde_json::from_str(&page(&made).json()).expect("JSON");
    assert_eq!(json["scruple"]["schema"], 1);
    assert_eq!(json["history"]["versions"][12]["state"], "same-binary");
    assert_eq!(json["history"]["versions"][20]["parents"].as_array().map(Vec::len), Some(2));
    assert!(json["series"][3]["changes"][0]["ratio"].is_null());
    let events = json["events"].as_array().expect("events");
    assert_eq!(events.len(), 7);
    for event in events {
        for place in event["changes"].as_array().expect("changes") {
            let index = |key: &str| place[key].as_u64().expect("an index") as usize;
            let change = &json["series"][index("series")]["changes"][index("change")];
            assert!(change["set"].as_array().expect("a set").contains(&event["at"]), "{event}");
        }
    }
    assert_eq!(json["break_even"][0]["subject"], "init");
}

#[test]
fn versions_with_the_same_binary_share_their_figures() {
    let made = rich();
    let csv = page(&made).csv(None);
    let lines: Vec<&str> = csv.lines().collect();
    let figures = |index: usize| lines[index + 1].split_once(';').expect("columns").1;
    assert_eq!(figures(12), figures(11));
    assert_eq!(figures(7), ";;", "what did not build has no figures, and no zeros");
    let all = page(&made).csv_all();
    let commit = &made.history.versions[11].commit;
    assert_eq!(all.lines().filter(|line| line.contains(&format!("same-binary,{commit},"))).count(), 6);
}

#[test]
fn any_two_versions_have_their_line() {
    let made = rich();
    let page = page(&made);
    insta::assert_snapshot!(page.markdown_pair(0, 34), @r#"
    **Improvement** of `init`: Allocations: -97.25%  Memory: -99.41%  Time: -99.86% (Commit [9e3779b97f...a195a45c5d](https://github.com/example/winter/compare/9e3779b97f000000000000000000000000000000...a195a45c5d000000000000000000000000000022))
    **Regression** of `parse`: Allocations: +0.0010% (Commit [9e3779b97f...a195a45c5d](https://github.com/example/winter/compare/9e3779b97f000000000000000000000000000000...a195a45c5d000000000000000000000000000022))
    "#);
    insta::assert_snapshot!(page.markdown_pair(0, 6), @r#"
    **Improvement** of `init`: Allocations: -97.71%  Memory: +16.71%  Time: -98.88% (Commit [9e3779b97f...5384541279](https://github.com/example/winter/compare/9e3779b97f000000000000000000000000000000...5384541279000000000000000000000000000006))
    "#);
    insta::assert_snapshot!(page.markdown_pair(9, 11), @r#"
    No change (Commit [2e2ac13ef6...6a99b4b1f4](https://github.com/example/winter/compare/2e2ac13ef6000000000000000000000000000009...6a99b4b1f400000000000000000000000000000b))
    "#);
    insta::assert_snapshot!(page.markdown_pair(25, 33), @r#"
    **Improvement** of `init`: Memory: -99.49%  Time: -91.39% (Commit [11a25cd6e6...035e2aa2de](https://github.com/example/winter/compare/11a25cd6e6000000000000000000000000000019...035e2aa2de000000000000000000000000000021))
    "#);
    assert_eq!(page.markdown_pair(0, 35), "", "there is no such version");
}

#[test]
fn the_table_for_plots() {
    insta::assert_snapshot!(page(&rich()).csv(Some("init")), @r#"
    commit;allocations;memory;time
    9e3779b97f;44104512344;1926702851;12.246533037
    3c6ef372fe;44104512344;1925913846;12.231186871
    daa66d2c7d;44104512344;1927712199;12.255610178
    78dde6e5fc;44104512344;1926662084;12.242137296
    1715609f7b;44104512344;1925145008;12.252899017
    b54cda58fa;1009993328;2246956952;0.137123731
    5384541279;1009993328;2246962930;0.137733315
    f1bbcdcbf8;;;
    8ff3478577;;;
    2e2ac13ef6;1009993328;2248213407;0.136542461
    cc623af875;1009993328;2243529790;0.137003597
    6a99b4b1f4;1009993328;2246718402;0.136727342
    08d12e6b73;1009993328;2246718402;0.136727342
    a708a824f2;1211991992;2245602848;0.20042706
    454021de71;1211991992;2247317537;0.199661129
    e3779b97f0;;;
    81af15516f;1211991992;2245665128;0.199162743
    1fe68f0aee;1211991992;2247750605;0.388340856
    be1e08c46d;1211991992;2246035916;0.386287778
    5c55827dec;1211991992;2244684612;0.199761264
    fa8cfc376b;1211991992;2247203006;0.200216884
    98c475f0ea;1211991992;2244297917;0.199237517
    36fbefaa69;;;
    d5336963e8;1211991992;2244070982;0.199392028
    736ae31d67;1211991976;2246040542;0.200159251
    11a25cd6e6;1211991976;2247277584;0.199236916
    afd9d69065;1211991976;2248330183;0.199033735
    4e115049e4;1211991976;2245256842;0.200956382
    ec48ca0363;;;
    8a8043bce2;;;
    28b7bd7661;1211991976;9082456;0.017063759
    c6ef372fe0;1211991976;9088485;0.017042283
    6526b0e95f;1211991976;9084259;0.017180927
    035e2aa2de;1211991976;11384095;0.017109521
    a195a45c5d;1211991976;11373912;0.017070491
    "#);
}

#[test]
fn the_report_on_a_terminal() {
    insta::assert_snapshot!(bare_text(&page(&rich()).terminal(80)), @r#"
    winter · v0.9..HEAD
    35 versions: 28 weighed, 2 build failed, 2 skipped, 1 with the same binary as
    another, 1 check failed, 1 timed out

    init
      start.cold    40.9 s →  44.3 s  +8.12 % [+5.96, +10.29]  more
                   ▁▁▁▁▁▇▇××▆▇▇▇▇▆×▇▆▇▇▆▇×▆▇▆▆▇··▆▆▇▇▇
                        1
      wall          12.3 s → 17.2 ms  0.001393 × [0.001376, 0.001409]  faster
                   █████▃▃××▃▃▃▃▃▃×▃▄▄▃▃▃×▃▃▃▃▃··▁▁▁▁▁
                        1       2   3 4          6
      peak memory  1.93 GB → 11.4 MB  0.005906 × [0.005888, 0.005923]  less
                   ███████××██████×██████×█████··▁▁▁▁▁
                        1                        6  7
      allocated    44.1 GB → 1.21 GB  0.0275 ×  less
                   █████▁▁××▁▁▁▁▁▁×▁▁▁▁▁▁×▁▁▁▁▁··▁▁▁▁▁
                        1       2          5

    parse
      wall         5.21 ms → 5.18 ms  -0.53 % [-2.52, +1.46]  no sure change
                   ▄▄▄▄▄▅▄××▄▄▄▄▄▄×▄▄▄▄▄▄×▄▄▄▄▄··▄▃▄▄▄
      allocated    3.15 MB → 3.15 MB  +32 B  more
                   ▄▄▄▄▄▄▄××▄▄▄▄▄▄×▄▄▄▄▄▄×▄▄▄▄▄··▄▄▄▄▄
                                2

    Changes, regressions first
     #3 regression  1fe68f0aee  Trace each step
        a spike until be1e08c46d
        wall  201 ms → 390 ms  +94.0 % [+92.1, +96.0]  slower
     #2 regression  a708a824f2  Check every access
        init wall        138 ms → 201 ms  +45.7 % [+43.9, +47.4]  slower
        init allocated   1.01 GB → 1.21 GB  +20.0 %  more
        parse allocated  3.15 MB → 3.15 MB  +32 B  more
     #1 improvement  b54cda58fa  Mutable vectors for the memory
        wall         12.3 s → 138 ms  0.01121 × [0.01108, 0.01134]  faster
        start.cold   41.0 s → 44.2 s  +7.80 % [+6.51, +9.10]  more
        peak memory  1.93 GB → 2.25 GB  +16.6 % [+15.2, +18.0]  more
        allocated    44.1 GB → 1.01 GB  0.0229 ×  less
     #6 improvement  one of 4: 4e115049e4, ec48ca0363, 8a8043bce2, 28b7bd7661
        first seen at 28b7bd7661
        wall         201 ms → 17.2 ms  0.0856 × [0.0845, 0.0866]  faster
        peak memory  2.25 GB → 9.10 MB  0.004044 × [0.003996, 0.004093]  less
     #4 improvement  5c55827dec  Change number 19 of the interpreter
        back to the level before #3
        wall  390 ms → 201 ms  -48.5 % [-49.0, -47.9]  faster
     #7 change  035e2aa2de  Keep modules that were decoded
        accepted: modules are kept, see the design
        peak memory  9.10 MB → 11.4 MB  +25.3 % [+23.8, +26.8]  more
    1 change below 0.01 %: #5 736ae31d67 allocated -16 B.
    No change was found at the other 20 weighed versions.

    Could not be weighed
      f1bbcdcbf8  build failed: cabal build ended with code 1: Variable not in
                  scope: <step>
                  logs/f1bbcdcbf8.log
      8ff3478577  build failed: cabal build ended with code 1: Variable not in
                  scope: <step>
                  logs/8ff3478577.log
      e3779b97f0  check failed: the output of ‘init’ is not that of the first
                  version
                  logs/e3779b97f0.log
      36fbefaa69  timed out: the build took longer than 10 min
                  logs/36fbefaa69.log

    Smaller steps may have been missed: init start.cold 3.0 %, init wall 1.8 %,
      init peak memory 0.5 %, parse wall 3.0 %.

    Spread among versions with the same binary: init start.cold 0.5 %, init wall
      0.3 %, init peak memory 0.1 %, parse wall 0.5 %.

    Build cost against run time
      init, from 9e3779b97f to a195a45c5d: a build takes 3.20 s more; a run of it
        takes 12.3 s less: it pays off after 1 run for each build.

    Still open
      #6 comes from one of 4 versions; 2 of them were not weighed:
        `scruple history bisect` looks closer.
    ! The machine was busy: commands waited for a core 12 % of their time.
    "#);
}

#[test]
fn lines_to_paste() {
    insta::assert_snapshot!(page(&rich()).markdown(), @r#"
    `winter` `v0.9..HEAD`: 35 versions: 28 weighed, 2 build failed, 2 skipped, 1 with the same binary as another, 1 check failed, 1 timed out

    ## From the first version to the last

    **Improvement** of `init`: Allocations: -97.25%  Memory: -99.41%  Time: -99.86% (Commit [9e3779b97f...a195a45c5d](https://github.com/example/winter/compare/9e3779b97f000000000000000000000000000000...a195a45c5d000000000000000000000000000022))
    **Regression** of `parse`: Allocations: +0.0010% (Commit [9e3779b97f...a195a45c5d](https://github.com/example/winter/compare/9e3779b97f000000000000000000000000000000...a195a45c5d000000000000000000000000000022))

    ## Changes

    - **Regression** of `init`: Time: +94.03% (Commit [81af15516f...1fe68f0aee](https://github.com/example/winter/compare/81af15516f000000000000000000000000000010...1fe68f0aee000000000000000000000000000011)) – a spike until be1e08c46d
    - **Regression** of `init`: Allocations: +20.00%  Time: +45.65% (Commit [6a99b4b1f4...a708a824f2](https://github.com/example/winter/compare/6a99b4b1f400000000000000000000000000000b...a708a824f200000000000000000000000000000d))
      - `parse`: Allocations: +0.0010%
    - **Improvement** of `init`: Allocations: -97.71%  Memory: +16.58%  Time: -98.88% (Commit [1715609f7b...b54cda58fa](https://github.com/example/winter/compare/1715609f7b000000000000000000000000000004...b54cda58fa000000000000000000000000000005))
    - **Improvement** of `init`: Memory: -99.60%  Time: -91.44% (Commit [afd9d69065...28b7bd7661](https://github.com/example/winter/compare/afd9d6906500000000000000000000000000001a...28b7bd766100000000000000000000000000001e))
    - **Improvement** of `init`: Time: -48.46% (Commit [be1e08c46d...5c55827dec](https://github.com/example/winter/compare/be1e08c46d000000000000000000000000000012...5c55827dec000000000000000000000000000013)) – back to the level before #&#8203;3
    - **Change** of `init`: Memory: +25.27% (Commit [6526b0e95f...035e2aa2de](https://github.com/example/winter/compare/6526b0e95f000000000000000000000000000020...035e2aa2de000000000000000000000000000021)) – accepted: modules are kept, see the design

    | # | version | title | metric | before | after | change |
    |---:|:---|:---|:---|---:|---:|---:|
    | 3 | 1fe68f0aee | `Trace each step` | init wall | 201 ms | 390 ms | +94.0 % [+92.1, +96.0] |
    | 2 | a708a824f2 | `Check every access` | init wall | 138 ms | 201 ms | +45.7 % [+43.9, +47.4] |
    |  |  |  | init allocated | 1.01 GB | 1.21 GB | +20.0 % |
    |  |  |  | parse allocated | 3.15 MB | 3.15 MB | +32 B |
    | 1 | b54cda58fa | `Mutable vectors for the memory` | init wall | 12.3 s | 138 ms | 0.01121 × [0.01108, 0.01134] |
    |  |  |  | init start.cold | 41.0 s | 44.2 s | +7.80 % [+6.51, +9.10] |
    |  |  |  | init peak memory | 1.93 GB | 2.25 GB | +16.6 % [+15.2, +18.0] |
    |  |  |  | init allocated | 44.1 GB | 1.01 GB | 0.0229 × |
    | 6 | one of 4: 4e115049e4, ec48ca0363, 8a8043bce2, 28b7bd7661 |  | init wall | 201 ms | 17.2 ms | 0.0856 × [0.0845, 0.0866] |
    |  |  |  | init peak memory | 2.25 GB | 9.10 MB | 0.004044 × [0.003996, 0.004093] |
    | 4 | 5c55827dec | `Change number 19 of the interpreter` | init wall | 390 ms | 201 ms | -48.5 % [-49.0, -47.9] |
    | 7 | 035e2aa2de | `Keep modules that were decoded` | init peak memory | 9.10 MB | 11.4 MB | +25.3 % [+23.8, +26.8] |

    1 change below 0.01 %: #&#8203;5 736ae31d67 allocated -16 B.

    ## Could not be weighed

    - f1bbcdcbf8: `build failed: cabal build ended with code 1: Variable not in scope: <step>`
    - 8ff3478577: `build failed: cabal build ended with code 1: Variable not in scope: <step>`
    - e3779b97f0: `check failed: the output of ‘init’ is not that of the first version`
    - 36fbefaa69: `timed out: the build took longer than 10 min`

    Smaller steps may have been missed: init start.cold 3.0 %, init wall 1.8 %, init peak memory 0.5 %, parse wall 3.0 %.

    Build cost against run time: init, from 9e3779b97f to a195a45c5d: a build takes 3.20 s more; a run of it takes 12.3 s less: it pays off after 1 run for each build.

    - #&#8203;6 comes from one of 4 versions; 2 of them were not weighed: \`scruple history bisect\` looks closer.
    "#);
}

#[test]
fn only_a_commit_that_reverts_another_takes_its_change_back() {
    let mut made = rich();
    made.history.versions[19].title = "Revert \"Trace each step\" (#20)".to_owned();
    let text = bare_text(&page(&made).terminal(120));
    assert!(text.contains("takes back #3") && !text.contains("back to the level"), "{text}");
}
