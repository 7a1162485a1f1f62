//! Describes the environment of a run, how it differs from that of another run, and the command that repeats the run.

use crate::render::page::{Cell, ColumnHeading, Section, SectionPart, Table, harmless_sentence};
use crate::run_report::Report;
use scruple_core::plural::counted;
use scruple_core::provenance::Provenance;
use scruple_core::run::Run;
use scruple_core::unit::{Unit, quantity};

/// The number of digits of a file's digest that a page shows. JSON contains all of them.
const DIGITS: usize = 16;

/// Makes the section about the environment.
pub fn section(run: &Run) -> Section {
    // The seed is only meaningful for runs that Scruple measured itself.
    let seed = run.provenance.tool.is_none().then(|| ("Seed".to_owned(), run.seed.to_string()));
    let rows = facts(&run.provenance)
        .into_iter()
        .chain(seed)
        .map(|(what, text)| vec![Cell::text(what), Cell::text(harmless_sentence(&text))]);
    let table = Table {
        label: "Where it was measured".to_owned(),
        head: vec![ColumnHeading::text(""), ColumnHeading::text("")],
        rows: rows.collect(),
        ..Table::default()
    };
    Section {
        title: "Where it was measured".to_owned(),
        folded: None,
        parts: vec![SectionPart::Table(table)],
    }
}

/// Returns the path of a file as a page shows it. A build of a version is below its digest in Scruple's cache. A reader
/// elsewhere needs no more than the digest and what follows it.
fn shown_path(path: &str) -> String {
    let build = path.rsplit_once("/built/").and_then(|(_, below)| below.split_once('/'));
    let is_digest = |name: &str| name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    match build {
        Some((digest, file)) if is_digest(digest) => {
            format!("{} of build {}", file.trim_start_matches("./"), &digest[..10])
        }
        _ => path.to_owned(),
    }
}

/// Makes the section about the differences between two environments, and what they mean for the metrics.
pub fn differences(report: &Report<'_>) -> Option<Section> {
    let environments = report.environments.as_ref()?;
    let text = |text: &Option<String>| text.as_ref().map_or("–".to_owned(), |text| harmless_sentence(text));
    let mut rows: Vec<Vec<Cell>> = environments
        .differences
        .iter()
        .map(|one| {
            vec![
                Cell::text(harmless_sentence(&one.name)),
                Cell::text(text(&one.reference)),
                Cell::text(text(&one.run)),
            ]
        })
        .collect();
    rows.extend(environments.commands.iter().map(|[reference, run]| {
        let [reference, run] = [reference, run].map(|command| Cell::code(harmless_sentence(command)));
        vec![Cell::text("the command"), reference, run]
    }));
    let mut parts: Vec<SectionPart> =
        report.preface().iter().map(|line| SectionPart::Words(harmless_sentence(line))).collect();
    let label = "What differs in the environment".to_owned();
    if !rows.is_empty() {
        let head = ["What", "Reference", "The other run"].map(ColumnHeading::text).into();
        parts.push(SectionPart::Table(Table {
            label: label.clone(),
            head,
            rows,
            stacks: true,
            ..Table::default()
        }));
    }
    (!parts.is_empty()).then_some(Section { title: label, folded: None, parts })
}

/// Returns all known facts about an environment, each with its name.
fn facts(place: &Provenance) -> Vec<(String, String)> {
    let known = |number: u64, text: String| (number > 0).then_some(text);
    let machine = [
        (!place.cpu.is_empty()).then(|| place.cpu.clone()),
        known(u64::from(place.cores), counted(place.cores, "core")),
        known(place.memory, quantity(place.memory as f64, &Unit::Bytes)),
    ];
    let mut facts = vec![
        ("Machine".to_owned(), machine.into_iter().flatten().collect::<Vec<String>>().join(", ")),
        ("System".to_owned(), format!("{}, kernel {}", place.os, place.kernel)),
    ];
    let or = |known: &Option<String>, else_: &str| known.clone().unwrap_or_else(|| else_.to_owned());
    match &place.tool {
        // Facts that another tool did not record are unknown.
        Some(tool) => facts.push(("Tool".to_owned(), tool.clone())),
        None => facts.extend([
            ("Virtual machine".to_owned(), or(&place.virtualized, "none visible")),
            ("Frequency governor".to_owned(), or(&place.governor, "not visible")),
            ("Load at the start".to_owned(), format!("{:.2}", place.load)),
        ]),
    }
    if let Some(commit) = &place.commit {
        let dirty = if place.dirty == Some(true) { ", with changes" } else { "" };
        facts.push(("Commit".to_owned(), format!("{commit}{dirty}")));
    }
    facts.push(("Folder".to_owned(), place.folder.clone()));
    // Other tools record facts of their own here, such as the host, instead of variables of the environment.
    let named = |name: &str| match place.tool {
        Some(_) => name.to_owned(),
        None => format!("Variable {name}"),
    };
    facts.extend(place.environment.iter().map(|(name, value)| (named(name), value.clone())));
    facts.extend(
        place
            .toolchains
            .iter()
            .map(|(path, version)| (format!("Compiler {}", shown_path(path)), version.clone())),
    );
    let file = |kind: &str, path: &str, digest: &str| {
        (format!("{kind} {}", shown_path(path)), digest.chars().take(DIGITS).collect())
    };
    facts.extend(place.libraries.iter().map(|(path, digest)| file("Library", path, digest)));
    facts.extend(place.programs.iter().map(|(path, digest)| file("Program", path, digest)));
    // An imported run contains hardly any facts about its machine.
    facts.retain(|(_, text)| !text.is_empty() && text != ", kernel ");
    facts
}

/// Makes the section with the command that repeats the run.
pub fn again(run: &Run) -> Option<Section> {
    let mut words: Vec<String> = run.argv.clone();
    let seeded = words.iter().any(|word| word == "--seed" || word.starts_with("--seed="));
    let takes_seed = words.get(1).is_some_and(|verb| ["run", "bench"].contains(&verb.as_str()));
    if takes_seed && !seeded {
        // Everything after `--` belongs to the measured program.
        let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
        words.splice(at..at, ["--seed".to_owned(), run.seed.to_string()]);
    }
    let text = shell_words::join(&words);
    (!text.is_empty()).then(|| Section {
        title: super::AGAIN.to_owned(),
        folded: None,
        parts: vec![SectionPart::Code(super::code(&text))],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_builds_in_the_cache_are_shown_by_their_digests() {
        let digest = "ba7816bf8f01cfea414140de5dae2223";
        assert_eq!(shown_path(&format!("/cache/built/{digest}/./bin/app")), "bin/app of build ba7816bf8f");
        assert_eq!(shown_path("/home/built/application-server/app"), "/home/built/application-server/app");
    }
}
