#![expect(clippy::unwrap_used)]

use super::*;
use crate::profile::{CallProfile, FORMATS, tests::small};
use crate::render::export::writer;
use scruple_core::explain::{Count, OwnCost};
use scruple_fuzz::Corpus;

fn written(profile: &CallProfile, format: &str) -> Vec<u8> {
    writer(&FORMATS, format).unwrap()(std::slice::from_ref(profile), profile.main())
}

fn corpus(path: &str) -> Vec<u8> {
    std::fs::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus")).join(path)).unwrap()
}

/// Returns the own and the inclusive cost of a function.
fn of(imported: &ImportedProfile, name: &str) -> (OwnCost, OwnCost) {
    let profile = CallProfile::of("", &imported.side, &imported.kind);
    let place = profile.frames.iter().position(|frame| frame.name == name).unwrap();
    let sum = profile.functions()[place];
    (sum.own, sum.inclusive.unwrap_or_default())
}

fn instructions(instructions: u64) -> OwnCost {
    OwnCost { instructions, ..OwnCost::default() }
}

#[test]
fn exports_for_other_tools_can_be_read_again() {
    for format in ["collapsed", "pprof", "callgrind"] {
        let bytes = written(&small(), format);
        let read = parse(&bytes).unwrap();
        assert_eq!(read.side.tree.total(Count::Instructions), 1160, "{format:?}");
        // Semicolons in names are replaced in collapsed stacks.
        let name = if format == "collapsed" { "work, now" } else { "work; now" };
        let (own, inclusive) = of(&read, name);
        assert_eq!(own.instructions, 1000);
        let contexts = read.kind.callers == KnownCallers::Contexts;
        assert_eq!(
            (contexts, inclusive.instructions),
            (format != "callgrind", if contexts { 1060 } else { 0 })
        );
        assert_eq!(read.side.tree.total(Count::Bytes), if format == "collapsed" { 0 } else { 48 });
        assert_eq!(read.kind.sampled.is_some(), format == "collapsed");
    }
}

#[test]
fn a_profile_of_pprof_may_begin_with_any_field() {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*written(&small(), "pprof")), &mut bytes)
        .unwrap();
    // Go 1.26 begins with the time.
    let with_time = [b"\x48\xf8\xf3\x01", bytes.as_slice()].concat();
    assert_eq!(parse(&with_time).unwrap().side.tree.total(Count::Instructions), 1160);
}

#[test]
fn a_packed_profile_is_unpacked_and_a_damaged_pack_is_refused() {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packer, b"main;work 7\n").unwrap();
    let packed = packer.finish().unwrap();
    assert_eq!(of(&parse(&packed).unwrap(), "main"), (OwnCost::default(), instructions(7)));
    assert!(parse(&packed[..packed.len() - 9]).unwrap_err().contains("cannot be unpacked"));
    // A name that is not UTF-8 does not make a profile binary.
    assert_eq!(of(&parse(b"main;caf\xe9 7\n").unwrap(), "caf\u{fffd}"), (instructions(7), instructions(7)));
    assert!(parse(b"\x28\xb5\x2f\xfd\x04\x00").unwrap_err().contains("cannot be unpacked"));
}

#[test]
fn a_changed_byte_of_a_pack_is_noticed() {
    let text = "main;work 7\nmain;rest 9\n".repeat(40);
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packer, text.as_bytes()).unwrap();
    let zstd =
        ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    for packed in [packer.finish().unwrap(), zstd] {
        let right = parse(&packed).unwrap();
        assert!(right.has_checksum);
        for at in 0..packed.len() * 8 {
            let mut damaged = packed.clone();
            damaged[at / 8] ^= 1 << (at % 8);
            if let Ok(read) = parse(&damaged) {
                assert_eq!(read.side.tree, right.side.tree, "bit {at}");
            }
        }
        for length in 1..packed.len() {
            assert!(parse(&packed[..length]).is_err(), "{length} bytes");
        }
    }
    assert!(!parse(text.as_bytes()).unwrap().has_checksum);
}

#[test]
fn all_frames_of_zstd_are_read() {
    let frame =
        |text: &[u8]| ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest);
    let skipped = [&b"\x50\x2a\x4d\x18\x03\0\0\0"[..], b"abc"].concat();
    let packed = [frame(b"main;work 7\n"), skipped, frame(b"main;rest 9\n")].concat();
    assert_eq!(parse(&packed).unwrap().side.tree.total(Count::Instructions), 16);
}

#[test]
fn a_recursive_stack_leads_back_to_the_context_on_the_path() {
    let read = parse(b"main;fib;fib;fib 5\nmain;fib 2\n").unwrap();
    assert_eq!(of(&read, "fib"), (instructions(7), instructions(7)));
    assert_eq!(read.side.tree.contexts.len(), 3);
    let deep = format!("main{} 1\n", ";f;g".repeat(100_000));
    assert_eq!(parse(deep.as_bytes()).unwrap().side.tree.contexts.len(), 4);
}

#[test]
fn a_profile_of_heaptrack_has_the_allocations_that_it_shows_itself() {
    let read = parse(&corpus("heaptrack/twenty.txt")).unwrap();
    assert_eq!(read.kind.word, None);
    // `heaptrack_print` reports for the same file: 20 calls below `work`, 1160 bytes; 1 call of `main`, 100 bytes.
    let (own, inclusive) = of(&read, "work");
    assert_eq!((own.allocations, own.bytes), (20, 1150));
    assert_eq!(of(&read, "parse").1, inclusive);
}

#[test]
fn who_allocates_is_who_calls_the_operators_of_the_language() {
    // `main` calls `work`, which calls `operator new(unsigned long)` and `__rust_alloc`.
    let begin = "v 10400 3\nX ./h\ns 6 /bin/h\ns 4 main\ns 4 work\ns 1b operator new(unsigned long)\ns c __rust_alloc\n";
    let places = "i 1 1 2\ni 2 1 3\ni 3 1 4\ni 4 1 5\nt 1 0\nt 2 1\nt 3 2\nt 4 2\n";
    let read = parse(format!("{begin}{places}a 10 3\na 8 4\n+ 0\n+ 1\n# strings: 5\n# ips: 4\n").as_bytes())
        .unwrap();
    assert_eq!(of(&read, "work").0, OwnCost { allocations: 2, bytes: 24, ..OwnCost::default() });
    assert_eq!(of(&read, "__rust_alloc"), (OwnCost::default(), OwnCost::default()));
}

#[test]
fn code_of_the_language_is_no_origin_wherever_it_is() {
    // `work` calls `operator new(unsigned long)` in the library of C++.
    let begin =
        "v 10400 3\nX ./h\ns 6 /bin/h\ns 4 work\ns e libstdc++.so.6\ns 1b operator new(unsigned long)\n";
    let stacks = "i 1 1 2\ni 2 3 4\nt 1 0\nt 2 1\na 10 2\n+ 0\n# strings: 4\n# ips: 2\n";
    let read = parse(format!("{begin}{stacks}").as_bytes()).unwrap();
    let functions = read.side.tree.functions.iter().map(|one| (one.shown.as_str(), one.library));
    let expected = [("", false), ("work", false), ("operator new(unsigned long)", true)];
    let mut functions: Vec<_> = functions.collect();
    functions.sort_unstable_by_key(|(name, _)| expected.iter().position(|(one, _)| one == name));
    assert_eq!(functions, expected);
}

#[test]
fn a_table_of_memray_has_functions_of_python() {
    let read = parse(&corpus("memray/lists.csv")).unwrap();
    let (own, _) = of(&read, "<listcomp>");
    assert_eq!(own.allocations, 150);
    assert_eq!(read.side.tree.total(Count::Bytes), of(&read, "_run_tracker").1.bytes);
}

#[test]
fn a_kept_profile_is_what_it_was() {
    let mut read = parse(&corpus("kept/small.json")).unwrap();
    assert_eq!(read.title.as_deref(), Some("./app"));
    read.side.programs = vec![("/bin/app".to_owned(), 9)];
    let again = parse(&own_format_bytes("./app", true, &read.side)).unwrap();
    assert_eq!(again.side.programs, read.side.programs);
    assert_eq!((again.side.tree, again.side.code), (read.side.tree, read.side.code));
}

#[test]
fn samples_of_perf_are_read_with_their_files_and_threads() {
    let text = "# captured\nmy app7 7 [001] 1.5:    1001 cycles:u: \n\t 11b3 hash+0x1a (/bin/my app7)\n\
                \t 11c0 std::vec<int (*)(int)>::at(int) const+0x2 (inlined)\n\t 12 main (/bin/my app7)\n\n\
                my app7 7 [001] 1.6:    1001 cycles:u: \n\t ff write (/lib/libc.so.6)\n\t 0 [unknown] (/bin/my app7)\n\n";
    let read = parse(text.as_bytes()).unwrap();
    assert_eq!((read.kind.word.as_deref(), read.kind.sampled), (Some("samples"), Some(SampleWeights::ONE)));
    assert_eq!(read.side.tree.total(Count::Instructions), 2);
    assert_eq!(of(&read, "hash"), (instructions(1), instructions(1)));
    assert_eq!(of(&read, "std::vec<int (*)(int)>::at(int) const"), (OwnCost::default(), instructions(1)));
    assert_eq!(of(&read, "code of my app7 without a name"), (OwnCost::default(), instructions(1)));
    let module = |name: &str| {
        let found = read.side.tree.functions.iter().find(|function| function.name == name).unwrap();
        found.module.clone()
    };
    assert_eq!([module("main"), module("write")], ["program", "libc.so"]);
}

#[test]
fn a_file_of_callgrind_whose_first_line_of_totals_is_wrong_is_not_called_cut_off() {
    let text = "# callgrind format\nevents: Ir Dr\nsummary: 10 5\nfn=a\n1 8 5\n";
    assert!(parse(text.as_bytes()).is_err());
    assert!(parse(format!("{text}totals: 8 5\n").as_bytes()).is_ok());
}

#[test]
fn a_file_of_cachegrind_has_no_calls() {
    let read = parse(b"events: Ir\nfl=a.c\nfn=a\n1 8\nsummary: 8\n").unwrap();
    assert_eq!((read.kind.callers, read.side.tree.contexts[1].calls), (KnownCallers::Unknown, 0));
}

#[test]
fn a_function_that_no_other_one_of_callgrind_calls_is_called_once() {
    let text = b"events: Ir\nfn=main\n1 8\ncfn=f\ncalls=2 1\n1 6\nfn=f\n1 6\ntotals: 14\n";
    let tree = parse(text).unwrap().side.tree;
    let calls = tree.contexts[1..].iter().map(|one| (one.calls, one.recursive));
    assert_eq!(calls.collect::<Vec<_>>(), [(1, 1), (1, 0)]);
}

#[test]
fn a_file_that_is_not_a_profile_gets_one_clear_error() {
    for (bytes, says) in [
        (&b""[..], "it is empty"),
        (b"hello there\n", "as collapsed stacks: line 1: ‘there’ is not a whole number"),
        (b"a;b 1\na;b\n", "as collapsed stacks: line 2: a stack has no number after it"),
        (b"a;b 18446744073709551616\n", "is not a whole number"),
        (
            b"a;b 012345678901234567890123456789012345678901234567\n",
            "‘0123456789012345678901234567890123456789…’",
        ),
        (b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}", "it is JSON"),
        (
            b"# callgrind format\nevents: Dr Ir\nsummary: 5 9\nfn=a\n1 5 8\n",
            "says 9: it is cut off or damaged",
        ),
        (b"memray\0\x01", "memray transform csv"),
        (b"\x04\x22\x4d\x18@@\xc0", "memray transform csv"),
        (b"PERFILE2h\0\0\0", "`perf script -i FILE > FILE.txt`"),
        (
            b"app 7 1.5: 1 cycles: \n\t 11b3 f+0x1a (/app)\n",
            "as perf script’s: no empty line follows its last sample",
        ),
        (
            b"app 7 1.5: 1 cycles: \n\t 11b3 f (/app)\n\n\t 11b3 f (/app)\n",
            "line 4: it is not the line of a sample",
        ),
        (b"app 7 1.5: 1 cycles: \n\t 11b3 f (/app)\nmain 3\n\n", "line 3: it is not the line of a function"),
        (
            b"   my app 7 [001] 1.5:  1 cpu/cycles/u:  11b3 f+0x1a (/app)\n",
            "as perf script’s: its samples have no stacks; `perf record -g` records them",
        ),
        (
            b"app 7 1.5: 1 cycles: \n\t 11b3 f (/app)\n\napp 7 1.5: 1 faults: \n\t 11b3 f (/app)\n\n",
            "line 4: it has samples of several events (‘cycles’ and ‘faults’)",
        ),
        (b"desc: --massif-out-file=x\ncmd: ./x\n", "it is a file of massif"),
        (b"# callgrind format\nevents: Dr\n", "as callgrind’s: line 2: instructions (Ir) were not counted"),
        (b"# callgrind format\nevents: Ir\n", "as callgrind’s: it has no functions"),
        (b"v 10400 9\nX ./h\n", "as heaptrack’s: line 1: it is of version 9"),
        (b"v 10400 3\nX ./h\nt 5 0\n", "as heaptrack’s: line 3: there is no address 5"),
        (b"v 10400 3\nX ./h\ns 4 main\na 5 0\n+ 0\n+ ", "as heaptrack’s: its last line has no end"),
        (b"v 10400 3\nX ./h\ns 4 mai\n", "as heaptrack’s: line 3: a text does not have the 4 bytes"),
        (
            b"v 10400 3\nX ./h\ns 4 main\na 5 0\n+ 0\n",
            "as heaptrack’s: the number of strings at its end is missing",
        ),
        (
            b"v 10400 3\nX ./h\ns 4 main\na 5 0\n+ 0\n# strings: 2\n# ips: 0\n",
            "as heaptrack’s: it has 1 strings, and says 2",
        ),
        (b"v 10400 3\nX ./h\na 5 0\n+ 0\n- 0\n- 0\n", "line 6: more blocks of allocation 0 were freed"),
        (b"v 10400 3\nX ./h\nq 4 mai\n", "as heaptrack’s: line 3: ‘q’ is not a kind of line"),
        (b"allocator,num_allocations,size,tid\nMALLOC,1,2", "as memray’s: its last line has no end"),
        (
            b"allocator,num_allocations,size,tid\nMALLOC,1,2,3\n",
            "as memray’s: it has no column ‘stack_trace’",
        ),
        (b"\x0a\x04\x08\xff\xff\xff", "as pprof’s: it ends in the middle of a number"),
        (b"\xff\xfe\x00", "it is not text, and it does not begin like a file of pprof"),
        (b"{\"scruple_calls\":9,", "written by another version"),
        (b"{\"scruple_calls\":2,\"title\":3}", "it is damaged"),
    ] {
        let why = parse(bytes).unwrap_err();
        assert!(why.contains(says), "{why}");
        assert!(!why.contains('\n'), "{why}");
    }
    // The caller of the first context follows it in the list.
    let bytes = String::from_utf8(corpus("kept/small.json")).unwrap().replace("[[0,0,1,", "[[3,0,1,");
    assert!(parse(bytes.as_bytes()).unwrap_err().contains("do not fit together"));
}

/// Uses a profile that was read in every way that the program does.
fn is_used(bytes: &[u8]) {
    if let Ok(imported) = parse(bytes) {
        let profile = CallProfile::of("x", &imported.side, &imported.kind);
        let _ = (profile.functions(), profile.total(), written(&profile, "callgrind"));
    }
}

#[test]
fn damaged_profiles_of_other_tools_are_survived() {
    for name in ["collapsed", "callgrind", "heaptrack", "memray", "perf", "pprof", "kept"] {
        Corpus::named(name).is_survived_by(is_used);
    }
}

/// A profile of pprof with these types of values, period and values of samples.
fn of_pprof(types: &[(&str, &str)], period: Option<((&str, &str), u64)>, samples: &[&[u64]]) -> Vec<u8> {
    let varint = |mut value: u64| {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    };
    let field = |number: u64, bytes: &[u8]| {
        [varint(number << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
    };
    let mut texts = vec![""];
    let mut out = Vec::new();
    for (number, (name, unit)) in
        types.iter().map(|known| (1, *known)).chain(period.map(|(known, _)| (11, known)))
    {
        texts.extend([name, unit]);
        let last = texts.len() as u64 - 1;
        out.extend(field(number, &[vec![8], varint(last - 1), vec![16], varint(last)].concat()));
    }
    for values in samples {
        let values: Vec<u8> = values.iter().flat_map(|value| varint(*value)).collect();
        out.extend(field(2, &field(2, &values)));
    }
    out.extend(texts.iter().flat_map(|text| field(6, text.as_bytes())));
    out.extend(period.into_iter().flat_map(|(_, period)| [vec![12 << 3], varint(period)].concat()));
    out
}

#[test]
fn a_sample_of_pprof_stands_for_what_passes_between_two() {
    let weights = |main, allocations, bytes| Some(SampleWeights { main, allocations, bytes });
    let of = |types: &[_], period, samples: &[&[u64]]| {
        parse(&of_pprof(types, period, samples)).unwrap().kind.sampled
    };
    let heap = [("alloc_objects", "count"), ("alloc_space", "bytes")];
    let space = |between| Some((("space", "bytes"), between));
    let samples: [&[u64]; 3] = [&[5_244, 524_400], &[2, 2_000_000], &[0, 0]];
    // Blocks of 100 bytes: one sample stands for 5242.38 of them.
    assert_eq!(of(&heap, space(524_288), &samples), weights(1, 5_243, 524_288));
    assert_eq!(of(&heap, None, &samples), weights(1, 5_243, 512 << 10));
    // Every block of 100 bytes is sampled.
    assert_eq!(of(&heap, space(1), &samples), weights(1, 1, 1));
    let cpu = [("samples", "count"), ("cpu", "nanoseconds")];
    let of_cpu = Some((("cpu", "nanoseconds"), 10_000_000));
    assert_eq!(of(&cpu, of_cpu, &[&[3, 30_000_000]]).unwrap().main, 1);
    assert_eq!(of(&cpu[1..], of_cpu, &[&[30_000_000]]).unwrap().main, 10_000_000);
    assert_eq!(of(&cpu[1..], None, &[&[30_000_000], &[50_000_000]]).unwrap().main, 10_000_000);
    let live = of_pprof(&[("objects", "count"), ("space", "bytes")], space(1000), &[&[2, 70]]);
    let live = parse(&live).unwrap();
    assert_eq!((live.kind.word.as_deref(), live.kind.has_heap), (Some("bytes in use"), false));
    assert_eq!((live.side.tree.total(Count::Instructions), live.kind.sampled.unwrap().main), (70, 1000));
    let waits = [("contentions", "count"), ("delay", "nanoseconds")];
    assert_eq!(of(&waits, Some((waits[0], 5)), &[&[10, 777]]).unwrap().main, 5);
}
