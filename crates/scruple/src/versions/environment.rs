//! The environment of counting launches. It is the same at every version, whichever shell resumes the history, because
//! a program that copies its environment or compares its strings allocates memory accordingly.

use scruple_core::provenance::Provenance;
use scruple_stats::sorting::SortedMap;
use std::ffi::OsString;

/// The variables that programs need to run as usual. All others are left out.
const KEPT: [&str; 38] = [
    "DOTNET_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "GHCRTS",
    "GLIBC_TUNABLES",
    "GODEBUG",
    "GOGC",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "GOPATH",
    "GOROOT",
    "GUILE_LOAD_PATH",
    "HOME",
    "JAVA_HOME",
    "JAVA_TOOL_OPTIONS",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LOGNAME",
    "MALLOC_ARENA_MAX",
    "NODE_OPTIONS",
    "NODE_PATH",
    "OCAMLRUNPARAM",
    "OMP_NUM_THREADS",
    "PATH",
    "PERL5LIB",
    "PYTHONHASHSEED",
    "PYTHONHOME",
    "PYTHONMALLOC",
    "PYTHONPATH",
    "RUBYLIB",
    "RUBYOPT",
    "TMPDIR",
    "TZ",
    "USER",
];

/// Records the current values of the `KEPT` variables with the run.
pub fn record(provenance: &mut Provenance) {
    let values = KEPT.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
    provenance.environment.extend(values);
}

/// Returns the values that were recorded at the start of the run, or the current ones if none were recorded.
pub fn recorded(provenance: &Provenance) -> Vec<(OsString, OsString)> {
    let mut provenance = provenance.clone();
    if !provenance.environment.contains_key("PATH") {
        record(&mut provenance);
    }
    let kept = provenance.environment.into_iter().filter(|(name, _)| KEPT.contains(&name.as_str()));
    kept.map(|(name, value)| (name.into(), value.into())).collect()
}

/// Returns an environment in the form that units of a farm have.
pub fn as_text(environment: &[(OsString, OsString)]) -> SortedMap<String, String> {
    let text = |part: &OsString| part.to_string_lossy().into_owned();
    SortedMap::from_iter(environment.iter().map(|(name, value)| (text(name), text(value))))
}
