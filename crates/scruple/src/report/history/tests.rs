//! What holds of the page in every form.

use super::fixture::{Made, WICKED, bare, long, rich, unread};
use super::{Options, Page};
use scruple_core::history::State;
use unicode_width::UnicodeWidthStr;

fn page(made: &Made) -> Page<'_> {
    Page::of(&made.history, &made.judgement)
}

/// Text as a terminal without colours shows it.
fn bare_text(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

const FORMS: [Options; 4] = [
    Options { linear: false, combined: false },
    Options { linear: true, combined: false },
    Options { linear: false, combined: true },
    Options { linear: true, combined: true },
];

/// Writes pages for eyes: `PAGES=folder cargo test -p scruple --bin scruple pages -- --ignored`.
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
            let form = format!("{}{}", if options.linear { "lin" } else { "log" }, if options.combined { "3" } else { "" });
            write(format!("{name}-{form}.svg"), page.svg(options));
        }
    }
}
