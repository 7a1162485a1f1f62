//! Files that results are exported to. The ending of the file name determines the format.

use crate::fault::Fault;
use clap::Args;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Formats with their writers. The name of a format is also the ending of its files.
pub type Formats<W, const N: usize> = [(&'static str, W); N];

/// Endings that files for other tools usually have, and the names of their formats.
const USUAL: [(&str, &str); 5] = [
    ("speedscope.json", "speedscope"),
    ("firefox.json", "firefox"),
    ("pb.gz", "pprof"),
    ("pb", "pprof"),
    ("folded", "collapsed"),
];

/// Returns the names of the formats in a table.
pub fn names<W>(table: &[(&'static str, W)]) -> Vec<&'static str> {
    table.iter().map(|(name, _)| *name).collect()
}

/// Returns the writer of a format in a table, or `None` if the table lacks the format.
pub fn writer<W: Copy>(table: &[(&str, W)], format: &str) -> Option<W> {
    table.iter().find(|(name, _)| *name == format).map(|(_, writer)| *writer)
}

/// A file to write. The path `-` means standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The name of the format, in lower case.
    pub format: String,
    /// The path of the file.
    pub path: PathBuf,
}

impl FromStr for Export {
    type Err = String;

    /// Parses `FILE`, whose ending names the format, or `FORMAT:FILE`. [`checked`] decides whether a verb writes that
    /// format.
    fn from_str(text: &str) -> Result<Export, String> {
        let word = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let named = text.split_once(':').filter(|(name, path)| word(name) && !path.is_empty());
        // The whole text is lower case only here: the name of the file is kept.
        let lower = text.to_ascii_lowercase();
        let usual =
            USUAL.iter().map(|(ending, _)| *ending).find(|ending| lower.ends_with(&format!(".{ending}")));
        let ending = || Some((usual.or_else(|| Path::new(text).extension()?.to_str())?, text));
        match named.or_else(ending) {
            Some((name, path)) => {
                let name = name.to_ascii_lowercase();
                let known = USUAL.iter().find(|(ending, _)| *ending == name);
                let format = known.map_or(name.clone(), |(_, format)| (*format).to_owned());
                Ok(Export { format, path: path.into() })
            }
            None => {
                Err("it names no format: write FILE.json, or FORMAT:FILE such as json:- for standard output"
                    .into())
            }
        }
    }
}

/// Where results are written besides the terminal.
#[derive(Args, Clone, Debug, Default)]
pub struct ExportArgs {
    /// Write a file. Its extension chooses the format: .html, .json, .csv, .md, .adoc, .org or .xml (JUnit); json:-
    /// is standard output.
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
    /// Limits as tests.
    #[arg(long, value_name = "FILE", hide = true)]
    pub junit: Option<PathBuf>,
    /// A row for each metric.
    #[arg(long, value_name = "FILE", hide = true)]
    pub export_readings: Option<PathBuf>,
}

impl ExportArgs {
    /// Returns every file to write, including those of former options.
    pub fn all(&self) -> Vec<Export> {
        let former = &self.former;
        let former = [
            (if former.hyperfine { "hyperfine" } else { "json" }, &former.export_json),
            ("csv", &former.export_csv),
            ("md", &former.export_markdown),
            ("adoc", &former.export_asciidoc),
            ("org", &former.export_org),
            ("html", &former.export_html),
            ("svg", &former.export_svg),
            ("xml", &former.junit),
            ("readings", &former.export_readings),
        ];
        let export = |(format, path): (&str, &Option<PathBuf>)| {
            Some(Export { format: format.to_owned(), path: path.clone()? })
        };
        let former = former.into_iter().filter_map(export);
        self.files.iter().cloned().chain(former).collect()
    }

    /// Returns every file to write. Returns an error if a file cannot be written or the verb lacks its format, so that
    /// this is known before anything is measured.
    pub fn checked(&self, formats: &[&str]) -> Result<Vec<Export>, Fault> {
        checked(self.all(), formats)
    }
}

/// Returns the files if each can be written and its format is one of these.
pub fn checked(all: Vec<Export>, formats: &[&str]) -> Result<Vec<Export>, Fault> {
    for export in &all {
        if !formats.contains(&export.format.as_str()) {
            let endings: Vec<String> = formats.iter().map(|format| format!(".{format}")).collect();
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
    fn the_ending_names_the_format_and_a_prefix_overrides_it() {
        let export = |format: &str, path: &str| Ok(Export { format: format.to_owned(), path: path.into() });
        assert_eq!("a/b.JSON".parse(), export("json", "a/b.JSON"));
        assert_eq!("json:-".parse(), export("json", "-"));
        assert_eq!("md:out.csv".parse(), export("md", "out.csv"));
        assert_eq!("./x:y.org".parse(), export("org", "./x:y.org"));
        assert_eq!("a.Speedscope.json".parse(), export("speedscope", "a.Speedscope.json"));
        assert_eq!("firefox.json".parse(), export("json", "firefox.json"));
        assert_eq!("json:a.firefox.json".parse(), export("json", "a.firefox.json"));
        assert_eq!("cpu.pb.gz".parse(), export("pprof", "cpu.pb.gz"));
        assert_eq!("folded:-".parse(), export("collapsed", "-"));
        for unclear in ["-", "out", "json:", "json"] {
            assert!(unclear.parse::<Export>().is_err(), "{unclear}");
        }
        let unknown = vec!["out.txt".parse().expect("a name with an ending")];
        assert!(checked(unknown, &["json", "csv"]).is_err_and(|fault| fault.message.contains(".json, .csv")));
    }
}
