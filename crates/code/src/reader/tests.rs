#![expect(clippy::unwrap_used)]

use super::*;
use crate::allocation_sites::MemoryBlocks;
use scruple_fuzz::Corpus;

const WHOLE: &str = "scruple-calltree 1
mode tree
process 7 6
because exit 0
program /bin/x
argument a\\nb \\\\
heap-functions 1
cut-calls 0
o 1 /bin/x
f 1 1 1000 main
f 2 1 2000 
c 1 0 0 0 0 0 0
c 2 1 1 6 0 0 0
c 3 2 2 4 2 30 1
e 1 2 1
e 2 3 5
e 3 2 9
r 1 1 1000 3 34
r 0 1 2000 4 1
total 10
end
";

#[test]
fn a_profile_is_read_as_it_was_written() {
    let profile = parse(WHOLE).unwrap();
    assert_eq!(profile.words, ["/bin/x", "a\nb \\"]);
    assert_eq!((profile.total, profile.inclusive()), (10, vec![10, 10, 4]));
    assert_eq!(profile.heap(), HeapCounts { allocations: 2, bytes: 30, frees: 1 });
    assert_eq!((profile.contexts[1].calls, profile.contexts[2].calls), (1, 5));
    assert_eq!(profile.recursive, [RecursiveCalls { from: 2, to: 1, calls: 9 }]);
    let main = ProfileFunction { name: Some("main".into()), object: Some("/bin/x".into()), offset: 0x1000 };
    let functions = profile.functions();
    assert_eq!((functions[&main].own, functions[&main].inclusive, functions[&main].calls), (6, 10, 10));
    assert_eq!(profile.path(2), [Some(&main), Some(&profile.functions[1])]);
}

#[test]
fn a_profile_that_was_cut_short_anywhere_is_refused() {
    for length in 0..WHOLE.len() - 1 {
        assert!(parse(&WHOLE[..length]).is_err(), "{length}");
    }
}

#[test]
fn a_damaged_profile_is_refused_with_the_line() {
    let cases = [
        ("c 3 2 2", "c 3 9 2", "line 14: there is no context 9"),
        ("c 3 2 2", "c 3 2 9", "line 14: there is no function 9"),
        ("f 2 1", "f 2 8", "line 11: there is no file 8"),
        ("c 2 1 1 6", "c 2 1 1 7", "the tree has 11 instructions and the addresses 10"),
        ("1000 3 34", "1000 3 3x", "line 18: a length is malformed"),
        ("tree 1", "tree 2", "it is of another version"),
        ("total 10", "total ten", "line 20: ‘ten’ is not a number"),
        ("because exit", "because never", "line 4: ‘never’ is not a reason to stop"),
        ("e 1 2", "x 1 2", "line 15: ‘x’ is not a kind of line"),
    ];
    for (whole, damaged, says) in cases {
        let why = parse(&WHOLE.replacen(whole, damaged, 1)).unwrap_err();
        assert!(why.contains(says), "{why} / {says}");
    }
    assert!(parse("").unwrap_err().contains("does not begin"));
}

#[test]
fn damaged_profiles_are_survived() {
    let corpus = Corpus::named("calltree");
    corpus.is_survived_by_text(|text| {
        if let Ok(profile) = parse(text) {
            let _ = (profile.inclusive(), profile.heap(), profile.functions());
        }
    });
}

const SITES: &str = "scruple-calltree 1
mode sites
process 7 6
because exit 0
program /bin/x
heap-functions 1
cut-calls 0
o 1 /bin/x
o 2 /lib/libc.so.6
f 1 1 1000 main
f 2 2 2000 malloc
c 1 0 0 0 0 0 0
c 2 1 1 0 0 0 0
c 3 2 2 0 2 30 0
live 1 20
peak 2 30 90
inherited 0 0
reused-blocks 0
s 3 1 1010
h 3 2 30 1 20
l 0 0
l 90 30
total 100
end
";

#[test]
fn live_blocks_are_read_as_they_were_written() {
    let profile = parse(SITES).unwrap();
    let live = profile.live.unwrap();
    let blocks = |blocks, bytes| MemoryBlocks { blocks, bytes };
    assert_eq!(live.contexts[&2], (blocks(2, 30), blocks(1, 20)));
    assert_eq!(live.calls[&2], (Some("/bin/x".to_owned()), 0x1010));
    assert_eq!((live.peak, live.peak_at, live.end), (blocks(2, 30), 90, blocks(1, 20)));
    assert_eq!((profile.total, live.course), (100, vec![(0, 0), (90, 30)]));
}

#[test]
fn live_blocks_that_do_not_add_up_are_refused() {
    let cases = [
        (
            "live 1 20",
            "live 1 21",
            "the contexts have 30 bytes at the peak and 20 at the end, but the process 30 and 21",
        ),
        (
            "peak 2 30",
            "peak 2 29",
            "the contexts have 30 bytes at the peak and 20 at the end, but the process 29 and 20",
        ),
        ("l 90 30", "l 90 31", "the course does not contain the peak"),
        ("h 3 2", "h 4 2", "line 20: there is no context 4"),
        ("s 3 1", "s 3 3", "line 19: there is no file 3"),
        ("mode sites", "mode tree", "line 15: ‘live’ is not a kind of line"),
    ];
    for (whole, damaged, says) in cases {
        let why = parse(&SITES.replacen(whole, damaged, 1)).unwrap_err();
        assert!(why.contains(says), "{why} / {says}");
    }
}

#[test]
fn a_profile_that_could_not_be_written_is_not_called_damaged() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("out.7.unwritten"), "").unwrap();
    let why = read_all(&folder.path().join("out")).unwrap_err().to_string();
    assert!(why.contains("could not be written") && why.contains("free disk space"), "{why}");
}

#[test]
fn copies_of_counts_are_no_parts_of_a_process() {
    let folder = tempfile::tempdir().unwrap();
    let write = |part: &str, text: &str| std::fs::write(folder.path().join(part), text).unwrap();
    write(
        "out.7.1",
        &WHOLE.replace("exit 0", "dump 0").replace("heap-functions", "label first\nheap-functions"),
    );
    write("out.7.2", WHOLE);
    let profiles = read_all(&folder.path().join("out")).unwrap();
    assert_eq!((profiles.count(), profiles.total(), profiles.dumps.len()), (1, 10, 1));
    let named: Vec<_> = profiles.named_parts().map(|(label, profile)| (label, profile.total)).collect();
    assert_eq!(named, [("first", 10)]);
}
