//! Demangles the names of Rust and C++. What compilers add to the demangled names of one function is removed by
//! [`scruple_core::explain::normal`], so that the names are the same in all versions.

/// The name as its language writes it: demangled if it is a name of Rust or C++.
pub fn demangle(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    // The version suffix of a library's symbol does not belong to the function's name.
    let bare = name.split_once("@").map_or(name, |(bare, _)| bare);
    if !bare.starts_with("_Z") {
        return name.to_owned();
    }
    let parsed = cpp_demangle::Symbol::new(bare).ok();
    parsed.and_then(|symbol| symbol.demangle().ok()).unwrap_or_else(|| name.to_owned())
}
