//! Writes the gate as a comment on a pull request: regressions first, the rest folded, short enough for any forge.

use super::terminal::words;
use super::{origin_words, outcome_of_limit};
use crate::check::sentence;
use crate::check::summary::{FoundRow, GateSummary};
use crate::render::markup::{Markup, code, escaped};
use crate::render::metric_words::title;
use scruple_core::gate::GateOutcome;
use scruple_core::harmless_text::{plain, shortened};
use scruple_core::judge::limits::Kept;
use scruple_core::plural::counted;
use std::fmt::Write as _;

/// The largest numbers of unfolded and of folded rows in a comment.
const SHOWN: usize = 20;
const FOLDED: usize = 60;

/// The largest number of characters in a cell; longer texts are truncated.
const CELL: usize = 80;

/// Writes the comment. Its first line is hidden, and identifies the comment.
pub fn text(summary: &GateSummary) -> String {
    let mut out = format!("<!-- scruple:check:{} -->\n", name(&summary.name));
    let mark = match summary.kept {
        Kept::Yes => "✓",
        Kept::No => "▲",
        Kept::CantTell => "?",
    };
    let _ = writeln!(out, "### {mark} {}\n", escaped(&plain(&sentence::outcome(summary))));
    if let Some([base, head]) = &summary.labels {
        let _ = writeln!(out, "{} → {}\n", cell(base), cell(head));
    }
    let first = |row: &&FoundRow| row.finding.gates && row.finding.outcome < GateOutcome::Improvement;
    let (shown, rest): (Vec<&FoundRow>, Vec<&FoundRow>) = summary.rows.iter().partition(first);
    table(&shown, SHOWN, &mut out);
    if !summary.varying.is_empty() {
        let _ = writeln!(out, "\n{}\n", prose(&summary.varying));
    }
    for limit in summary.limits.iter().filter(|limit| limit.kept != Kept::Yes || limit.accepted.is_some()) {
        let accepted =
            limit.accepted.as_ref().map_or_else(String::new, |why| format!("; accepted: {}", prose(why)));
        let (text, arm) = (cell(&limit.text), cell(&limit.arm));
        let _ = writeln!(
            out,
            "- Limit {text}: **{}** {arm}: {}{accepted}",
            outcome_of_limit(limit.kept),
            prose(&limit.found)
        );
    }
    if !summary.origins.is_empty() {
        out.push_str("\n**Where it comes from**\n\n");
        for origin in &summary.origins {
            let (name, more) = origin_words(origin);
            let (metric, subject) = (prose(&title(&origin.metric)), cell(&origin.subject));
            let _ = writeln!(out, "- {metric} of {subject}: {} ({})", cell(&name), prose(&more));
        }
    }
    folded(&format!("{} that did not decide, or did not become worse", rest.len()), &rest, &mut out);
    let mut details: Vec<String> = summary.facts.iter().map(|fact| prose(fact)).collect();
    details.extend(summary.remarks.iter().map(|remark| prose(&remark.text)));
    let kept = summary.limits.iter().filter(|limit| limit.kept == Kept::Yes).count();
    if kept > 0 {
        details.push(format!("{} kept", counted(kept, "limit")));
    }
    if !summary.repeat.is_empty() {
        details.push(format!("Again: {}", code(&plain(&summary.repeat), Markup::Markdown)));
    }
    if !details.is_empty() {
        let _ = writeln!(out, "\n<details><summary>Where and how</summary>\n");
        for detail in details {
            let _ = writeln!(out, "- {detail}");
        }
        out.push_str("\n</details>\n");
    }
    out
}

fn folded(head: &str, rows: &[&FoundRow], out: &mut String) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n<details><summary>{head}</summary>\n");
    table(rows, FOLDED, out);
    out.push_str("\n</details>\n");
}

fn table(rows: &[&FoundRow], most: usize, out: &mut String) {
    if rows.is_empty() {
        return;
    }
    out.push_str("| | subject | metric | before | after | change |\n|---|---|---|---:|---:|---:|\n");
    for row in rows.iter().take(most) {
        let why = row.finding.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            prose(&shortened(&format!("{}{why}", words(row)), 2 * CELL)),
            cell(&row.finding.subject),
            prose(&row.title),
            prose(&row.before),
            prose(&row.after),
            prose(&row.change)
        );
    }
    if rows.len() > most {
        let _ = writeln!(out, "\n{} more are in the JSON.", rows.len() - most);
    }
}

fn cell(text: &str) -> String {
    code(&shortened(&plain(text), CELL), Markup::Markdown)
}

fn prose(text: &str) -> String {
    escaped(&plain(text))
}

/// Replaces all characters that could end an HTML comment.
fn name(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '_' })
        .take(CELL)
        .collect()
}
