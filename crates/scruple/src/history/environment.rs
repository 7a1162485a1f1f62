//! The environment of launches in which something is counted: the same at every version, whichever shell a history is taken
//! up from. What a program allocates depends on its environment, where it copies that, and on how its words are compared.

use scruple_core::provenance::Provenance;
use std::ffi::OsString;

/// Variables that programs need in order to run as they do for the user; all others are left out.
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

/// Keeps the present values of these variables with the run.
pub fn pin(provenance: &mut Provenance) {
    let values = KEPT.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
    provenance.environment.extend(values);
}

/// The variables as they were when the run began; as they are, where it was not noted.
pub fn pinned(provenance: &Provenance) -> Vec<(OsString, OsString)> {
    let mut provenance = provenance.clone();
    if !provenance.environment.contains_key("PATH") {
        pin(&mut provenance);
    }
    let kept = provenance.environment.into_iter().filter(|(name, _)| KEPT.contains(&name.as_str()));
    kept.map(|(name, value)| (name.into(), value.into())).collect()
}
