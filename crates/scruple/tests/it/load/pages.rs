//! Pages and distributions of loads that are replayed from a script.

use super::{load, script, window, windows};
use crate::support::Place;
use serde_json::{Value, json};

/// The attributes of the rows of the table with this label, in the order of the page.
fn rows_of(page: &str, label: &str) -> Vec<String> {
    let table = page.split_once(&format!("aria-label=\"{label}\"")).expect("a table").1;
    let body = table.split_once("<tbody").expect("a body").1.split_once("</tbody>").expect("its end").0;
    body.split("<tr").skip(1).map(|row| row.split('>').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_page_shows_when_responses_were_how_long_what_failed_and_costs_that_sort_without_a_script() {
    let place = Place::new();
    let windows: Vec<Value> = (0..10_u64)
        .map(|i| {
            let requests = [1000, 3000, 2000][i as usize % 3];
            let mut one = window(200 + i);
            one["span"] = requests.into();
            one["response"] = json!([[200 + i, requests]]);
            one["grown"] = json!({"time.cpu": requests * 30_000, "switches.voluntary": requests});
            if i > 6 {
                one["failures"] = json!({"refused": 40, "timed-out": i});
            }
            one
        })
        .collect();
    script(&place, &[("new", windows)]);
    let answer = place.run(load(&["--warmup", "off", "-i", "--label", "one", "--export", "page.html"]));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let page = place.read("page.html");
    let chart = |title: &str| {
        let (_, chart) = page.split_once(title).unwrap_or_else(|| panic!("no {title}"));
        chart.split_once("</figure>").expect("its end").0
    };
    assert!(chart("how long responses took, over time").contains("class=\"heat h6\""));
    let failed = chart("failed requests per second");
    assert!(failed.contains("refused (120)") && failed.contains("timed-out (24)"), "{failed}");
    // Sorted by the first column, the name, `cpu` comes before `switches`. Sorted by the second column, it comes after.
    let rows = rows_of(&page, "What a request costs");
    assert!(rows[0].contains("--o0:0;--o1:1") && rows[1].contains("--o0:1;--o1:0"), "{rows:?}");
    assert!(page.contains("<input type=\"radio\" name=\"what-a-request-costs-"), "{page}");
    // The only preformatted text is the command line that repeats the load.
    assert!(page.matches("<pre").count() <= 1 && !page.contains("<script"), "{page}");
    assert_eq!(place.run(["report", "--export", "stored.html"]).code, 0);
    assert!(place.read("stored.html").contains("class=\"heat h6\""));
}

#[test]
fn a_page_and_a_histogram_are_written() {
    let place = Place::new();
    script(&place, &[("new", windows(200)), ("o<d", windows(300))]);
    let exports = ["--export", "page.html", "--export", "new.hgrm"];
    let answer = place.run(load(&[&["--label", "both", "--against", "o<d=:10"][..], &exports].concat()));
    assert_eq!(answer.code, 0, "{}", answer.exchange());
    let page = place.read("page.html");
    assert!(page.contains("By percentile") && page.contains("o&lt;d") && !page.contains("o<d"));
    // A percentile of all requests is not the median of those of the windows.
    assert!(page.contains("below them the figure of all requests together"), "{page}");
    assert!(!page.contains('\u{1b}') && !page.contains("<a href") && page.ends_with("</html>\n"));
    assert!(place.read("new.hgrm").contains("Total count"));
    assert!(place.read("new.1.hgrm").contains("Total count"));
    // A page of the stored run has the same section, which needs no instrument.
    assert_eq!(place.run(["report", "--export", "stored.html"]).code, 0);
    let part = |page: &str| {
        let section = page.split("<h2>Response time</h2>").nth(1).expect("responses");
        section.split("</section>").next().expect("its end").to_owned()
    };
    assert_eq!(part(&place.read("stored.html")), part(&page));
    assert!(part(&page).contains("By percentile"));
}
