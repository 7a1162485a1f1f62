//! Tests of names and lines.

use crate::harness::{Workshop, of};
use scruple_code::{Symbols, demangle};

#[test]
fn inlined_functions_and_lines_are_distinguished() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("inlined.c", &["-g"]);
    let tree = workshop.tree(&program, &[]);
    let costs = tree.source_costs(&mut Symbols::new());
    let own = |name: &str| {
        let rows = costs.functions.iter().filter(|row| row.frame.name.as_deref() == Some(name));
        rows.map(|row| row.instructions).sum::<u64>()
    };
    assert!(own("within") > 10_000 * 3, "{}", own("within"));
    assert_eq!(own("within") + own("outside"), of(&tree, "outside").own);
    let line = &costs.lines[0];
    assert!(line.frame.file.as_deref().is_some_and(|file| file.ends_with("inlined.c")), "{line:?}");
    assert_eq!(line.frame.name.as_deref(), Some("within"));
    assert_eq!(costs.functions.iter().map(|row| row.instructions).sum::<u64>(), tree.total);
    assert_eq!(costs.lines.iter().map(|row| row.instructions).sum::<u64>() + costs.without_lines, tree.total);
}

#[test]
fn debugging_information_is_found_in_a_separate_file() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("inlined.c", &["-g", "-Wl,--build-id"]);
    let separate = program.with_extension("debug");
    let objcopy = |words: &[&str]| {
        let status = std::process::Command::new("objcopy").args(words).current_dir(workshop.path()).status();
        assert!(status.unwrap().success(), "{words:?}");
    };
    let (file, debug) = (program.to_str().unwrap(), separate.to_str().unwrap());
    objcopy(&["--only-keep-debug", file, debug]);
    objcopy(&["--strip-debug", &format!("--add-gnu-debuglink={debug}"), file]);
    let costs = workshop.tree(&program, &[]).source_costs(&mut Symbols::new());
    assert_eq!(costs.functions[0].frame.name.as_deref(), Some("within"));
}

#[test]
fn unknown_addresses_are_reported_as_unknown() {
    let Some(workshop) = Workshop::new() else { return };
    let program = workshop.compile("known.c", &["-s", "-nostartfiles", "-static", "-Wl,-emain"]);
    let mut symbols = Symbols::new();
    let location = symbols.locate(program.to_str(), 0x401000);
    assert_eq!((location.frames.len(), location.name()), (0, "known+0x401000"));
    assert_eq!(symbols.locate(None, 7).name(), "code that the program generated");
    assert_eq!(symbols.locate(Some("/nowhere/lib.so"), 16).name(), "lib.so+0x10");
}

#[test]
fn names_are_as_their_language_writes_them() {
    assert_eq!(demangle("_ZN3std2io5Write9write_all17h0123456789abcdefE"), "std::io::Write::write_all");
    assert_eq!(
        demangle("_ZNSt6vectorIiSaIiEE9push_backERKi"),
        "std::vector<int, std::allocator<int> >::push_back(int const&)"
    );
    assert_eq!(demangle("main.(*Tree).Insert"), "main.(*Tree).Insert");
    assert_eq!(demangle("memcpy@@GLIBC_2.14"), "memcpy@@GLIBC_2.14");
}
