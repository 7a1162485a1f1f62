//! Files that results are exported to. The name's ending determines the format.

use crate::fault::Fault;
use clap::Args;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The formats of exported results. Each verb writes some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    Json,
    /// Comma-separated values.
    Csv,
    /// A table in Markdown.
    Markdown,
    /// A table in AsciiDoc.
    AsciiDoc,
    /// A table in Org.
    Org,
    /// A page for browsers.
    Html,
    /// A chart.
    Svg,
    /// Budgets as tests, in JUnit's XML.
    Junit,
    /// Regressions at the lines that bring them, in SARIF.
    Sarif,
    /// A row for each metric of each arm, as CSV.
    Readings,
    /// JSON in the shape of hyperfine's.
    Hyperfine,
    /// A distribution of latencies, in the text format of HdrHistogram.
    Hgrm,
    /// Distributions of latencies over time, as a log of HdrHistogram.
    Hlog,
    /// Every request of a load, as CSV.
    Requests,
    /// Every request of a load, an object in each line.
    JsonLines,
    /// Stacks of a call tree, a line each.
    Collapsed,
    /// A call tree in the format of callgrind.
    Callgrind,
    /// A call tree as a message of pprof.
    Pprof,
    /// A call tree in the JSON of speedscope.
    Speedscope,
}

/// The formats with their endings.
const ENDINGS: [(Format, &str); 19] = [
    (Format::Json, "json"),
    (Format::Csv, "csv"),
    (Format::Markdown, "md"),
    (Format::AsciiDoc, "adoc"),
    (Format::Org, "org"),
    (Format::Html, "html"),
    (Format::Svg, "svg"),
    (Format::Junit, "xml"),
    (Format::Sarif, "sarif"),
    (Format::Readings, "readings"),
    (Format::Hyperfine, "hyperfine"),
    (Format::Hgrm, "hgrm"),
    (Format::Hlog, "hlog"),
    (Format::Requests, "requests"),
    (Format::JsonLines, "jsonl"),
    (Format::Collapsed, "collapsed"),
    (Format::Callgrind, "callgrind"),
    (Format::Pprof, "pprof"),
    (Format::Speedscope, "speedscope"),
];

/// The formats in which any run can be written.
pub const OF_RUNS: [Format; 8] = [
    Format::Json,
    Format::Csv,
    Format::Markdown,
    Format::AsciiDoc,
    Format::Org,
    Format::Html,
    Format::Junit,
    Format::Hyperfine,
];

impl Format {
    /// The ending of files of this format, which is also its name before a colon.
    pub fn ending(self) -> &'static str {
        ENDINGS.iter().find(|(format, _)| *format == self).map_or("", |(_, ending)| ending)
    }

    fn of_ending(ending: &str) -> Option<Format> {
        ENDINGS.iter().find(|(_, other)| other.eq_ignore_ascii_case(ending)).map(|(format, _)| *format)
    }
}

/// One file to write. The path `-` is standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// In which format.
    pub format: Format,
    /// The path.
    pub path: PathBuf,
}

impl FromStr for Export {
    type Err = String;

    /// Reads `FILE`, whose ending says the format, or `FORMAT:FILE`.
    fn from_str(text: &str) -> Result<Export, String> {
        if let Some((name, path)) = text.split_once(':')
            && let Some(format) = Format::of_ending(name)
            && !path.is_empty()
        {
            return Ok(Export { format, path: path.into() });
        }
        let ending = Path::new(text).extension().and_then(|ending| ending.to_str());
        match ending.and_then(Format::of_ending) {
            Some(format) => Ok(Export { format, path: text.into() }),
            None => {
                Err("its ending is no format; write FORMAT:FILE, such as json:- for standard output".into())
            }
        }
    }
}

/// Where results are written besides the terminal.
#[derive(Args, Clone, Debug, Default)]
pub struct ExportArgs {
    /// Write a file whose ending says the format: .html, .json, .csv, .md, .adoc, .org or .xml
    /// (JUnit); json:- is standard output.
    #[arg(long = "export", value_name = "FILE")]
    pub files: Vec<Export>,
    /// The options of hyperfine, and former names.
    #[command(flatten)]
    pub former: FormerExportArgs,
}

/// One option for each format, as hyperfine has them.
#[derive(Args, Clone, Debug, Default)]
pub struct FormerExportArgs {
    /// JSON.
    #[arg(long, value_name = "FILE", hide = true)]
    pub export_json: Option<PathBuf>,
    /// JSON in the shape of hyperfine's.
    #[arg(long, hide = true, requires = "export_json")]
    pub hyperfine: bool,
    /// CSV.
    #[arg(long, value_name = "FILE", hide = true)]
    pub export_csv: Option<PathBuf>,
    /// Markdown.
    #[arg(long, value_name = "FILE", hide = true)]
    pub export_markdown: Option<PathBuf>,
    /// AsciiDoc.
    #[arg(long, value_name = "FILE", hide = true)]
    pub export_asciidoc: Option<PathBuf>,
    /// Org.
    #[arg(long, value_name = "FILE", hide = true, alias = "export-orgmode")]
    pub export_org: Option<PathBuf>,
    /// A page.
    #[arg(long, value_name = "FILE", hide = true)]
    pub export_html: Option<PathBuf>,
    /// A chart.
    #[arg(long, value_name = "FILE", hide = true)]
    pub export_svg: Option<PathBuf>,
    /// Budgets as tests.
    #[arg(long, value_name = "FILE", hide = true)]
    pub junit: Option<PathBuf>,
    /// A row for each metric.
    #[arg(long, value_name = "FILE", hide = true)]
    pub export_readings: Option<PathBuf>,
}

impl ExportArgs {
    /// Every file to write.
    pub fn all(&self) -> Vec<Export> {
        let former = &self.former;
        let former = [
            (if former.hyperfine { Format::Hyperfine } else { Format::Json }, &former.export_json),
            (Format::Csv, &former.export_csv),
            (Format::Markdown, &former.export_markdown),
            (Format::AsciiDoc, &former.export_asciidoc),
            (Format::Org, &former.export_org),
            (Format::Html, &former.export_html),
            (Format::Svg, &former.export_svg),
            (Format::Junit, &former.junit),
            (Format::Readings, &former.export_readings),
        ];
        let former =
            former.into_iter().filter_map(|(format, path)| Some(Export { format, path: path.clone()? }));
        self.files.iter().cloned().chain(former).collect()
    }

    /// Every file to write, checked before anything is measured: that it can be written and that the verb has its
    /// format.
    pub fn checked(&self, formats: &[Format]) -> Result<Vec<Export>, Fault> {
        checked(self.all(), formats)
    }
}

/// The files, if each can be written and its format is one of these.
pub fn checked(all: Vec<Export>, formats: &[Format]) -> Result<Vec<Export>, Fault> {
    for export in &all {
        if !formats.contains(&export.format) {
            let endings: Vec<String> = formats.iter().map(|format| format!(".{}", format.ending())).collect();
            return Err(Fault::usage(format!(
                "cannot export ‘{}’: this verb writes {}",
                export.path.display(),
                endings.join(", ")
            )));
        }
        if export.path != Path::new("-") {
            super::output::check_writable(&export.path)?;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_says_the_format_and_a_prefix_outweighs_it() {
        let export = |format, path: &str| Ok(Export { format, path: path.into() });
        assert_eq!("a/b.JSON".parse(), export(Format::Json, "a/b.JSON"));
        assert_eq!("json:-".parse(), export(Format::Json, "-"));
        assert_eq!("md:out.csv".parse(), export(Format::Markdown, "out.csv"));
        assert_eq!("./x:y.org".parse(), export(Format::Org, "./x:y.org"));
        for unclear in ["-", "out", "out.txt", "json:", "json"] {
            assert!(unclear.parse::<Export>().is_err(), "{unclear}");
        }
    }
}
