//! `scruple inspect ghc`: logs and profiles whose content is known, and programs built here.

use crate::leaks::haskell;
use crate::programs::has_ghc_profiling;
use crate::support::{Answer, Place, at};
use insta::assert_snapshot;
use std::path::PathBuf;
use std::process::Command;

/// Copies the sample `name` of the parsers' tests into `place` as `as_name`.
fn sample(place: &Place, name: &str, as_name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../measure/tests/data/runtimes/ghc/");
    let text = std::fs::read(PathBuf::from(folder).join(name)).expect("a sample");
    place.write(as_name, text)
}

fn ghc(place: &Place, words: &[&str]) -> Answer {
    place.run(["inspect", "ghc"].iter().chain(words))
}

#[test]
fn the_pauses_of_a_log() {
    let place = Place::new();
    sample(&place, "S-per-gc.stderr.trimmed.txt", "gc.log");
    assert_snapshot!(ghc(&place, &["pauses", "--from", "gc.log"]).stdout, @r"
    Pauses of ‘gc.log’
    every collection of one process, to the thousandth of a second in which the runtime logs them

                     count   median       p90       p99   longest     total    copied
      all               18  1.00 ms  11.0  ms  13.0  ms  13.0  ms  34.0  ms  35.7  MB
      generation 0      13  1.00 ms  11.0  ms  13.0  ms  13.0  ms  30.0  ms  26.1  MB
      generation 1       5  1.00 ms   1.00 ms   1.00 ms   1.00 ms   4.00 ms   9.61 MB

            < 1 ms          6  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
        to 1.00 ms         10  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
        to 2.00 ms          0
        to 5.00 ms          0
        to 10.0 ms          0
        to 20.0 ms          2  ▇▇▇▇▇▇▇▇

      live heap  ████████████████████████████████████████  at most 3.20 MB, 44.4 kB at the end
    ");
    let view = ghc(&place, &["pauses", "--from", "gc.log", "--json"]).json();
    assert_eq!(at(&view, "/generations/0/count"), 18);
    assert_eq!(at(&view, "/generations/0/max"), 13e6);
    assert_eq!(at(&view, "/generations/2/generation"), 1);
    let counted: u64 = at(&view, "/histogram")
        .as_array()
        .expect("bins")
        .iter()
        .filter_map(|bin| bin["count"].as_u64())
        .sum();
    assert_eq!(counted, 18);
    place.write("empty.log", "nothing\n");
    assert_snapshot!(ghc(&place, &["pauses", "--from", "empty.log"]).stderr, @r"error: ‘empty.log’ contains no log of collections: +RTS -S writes one to standard error");
}

#[test]
fn a_heap_profile_as_table_and_chart() {
    let place = Place::new();
    sample(&place, "heap-hT.hp", "prog.hp");
    assert_snapshot!(ghc(&place, &["heap", "prog.hp", "-n", "4", "--export", "prog.svg"]).stdout, @r"
    Heap of ‘alloc_all’
    8 samples; in the largest, 17.9 ms after the start, 3.20 MB were live; 14 bands, the largest first

                            at most  at the peak   share
      main:Main.Cell        2.40 MB      2.40 MB    75 %     ██████████████████████████
      MUT_ARR_PTRS_DIRTY  801    kB    801    kB    25 %     ██████████████████████████
      STACK               904    B     904    B    0.0 %     ██████████████████████████
      MUT_ARR_PTRS_CLEAN  552    B     552    B    0.0 %     ██████████████████████████
    ");
    assert_snapshot!(place.read("prog.svg"), @r#"
    <svg xmlns="http://www.w3.org/2000/svg" class="scruple" width="1000" height="460" viewBox="0 0 1000 460" role="img" aria-label="Live heap of ‘alloc_all’">
    <style>
    .scruple{--paper:#fff;--ink:#1c1c1c;--faint:#d8d8d8;--lightness:72%;font:11px ui-monospace,monospace}
    @media(prefers-color-scheme:dark){.scruple{--paper:#16181c;--ink:#e6e6e6;--faint:#3a3d42;--lightness:36%}}
    .scruple .paper{fill:var(--paper)}.scruple text{fill:var(--ink)}.scruple .line{stroke:var(--faint)}
    .scruple .head{font-size:14px;font-weight:bold}
    .scruple .part{stroke:var(--paper);stroke-width:.5}.scruple g:hover .part{stroke:var(--ink)}
    </style>
    <rect class="paper" width="1000" height="460"></rect>
    <text class="head" x="10" y="20">Live heap of ‘alloc_all’</text>
    <line class="line" x1="80" x2="720" y1="420.0" y2="420.0"></line><text x="74" y="424.0" text-anchor="end">0 B</text>
    <line class="line" x1="80" x2="720" y1="301.3" y2="301.3"></line><text x="74" y="305.3" text-anchor="end">1.00 MB</text>
    <line class="line" x1="80" x2="720" y1="182.7" y2="182.7"></line><text x="74" y="186.7" text-anchor="end">2.00 MB</text>
    <line class="line" x1="80" x2="720" y1="64.0" y2="64.0"></line><text x="74" y="68.0" text-anchor="end">3.00 MB</text>
    <text x="80.0" y="436" text-anchor="middle">0 ns</text>
    <text x="243.4" y="436" text-anchor="middle">5.00 ms</text>
    <text x="406.9" y="436" text-anchor="middle">10.0 ms</text>
    <text x="570.3" y="436" text-anchor="middle">15.0 ms</text>
    <g><title>main:Main.Cell: at most 2.40 MB</title><polygon class="part" points="80.0,420.0 155.2,135.2 351.2,135.2 415.8,135.2 510.9,135.2 602.7,135.2 666.3,135.2 720.0,420.0 720.0,420.0 666.3,420.0 602.7,420.0 510.9,420.0 415.8,420.0 351.2,420.0 155.2,420.0 80.0,420.0" fill="hsl(351 58% var(--lightness))"></polygon><rect class="part" x="736" y="112" width="12" height="12" fill="hsl(351 58% var(--lightness))"></rect><text x="754" y="122">main:Main.Cell</text></g>
    <g><title>MUT_ARR_PTRS_DIRTY: at most 801 kB</title><polygon class="part" points="80.0,420.0 155.2,40.2 351.2,40.2 415.8,40.2 510.9,40.2 602.7,40.2 666.3,40.2 720.0,420.0 720.0,420.0 666.3,135.2 602.7,135.2 510.9,135.2 415.8,135.2 351.2,135.2 155.2,135.2 80.0,420.0" fill="hsl(238 67% var(--lightness))"></polygon><rect class="part" x="736" y="94" width="12" height="12" fill="hsl(238 67% var(--lightness))"></rect><text x="754" y="104">MUT_ARR_PTRS_DIRTY</text></g>
    <g><title>STACK: at most 904 B</title><polygon class="part" points="80.0,420.0 155.2,40.1 351.2,40.1 415.8,40.1 510.9,40.1 602.7,40.1 666.3,40.1 720.0,420.0 720.0,420.0 666.3,40.2 602.7,40.2 510.9,40.2 415.8,40.2 351.2,40.2 155.2,40.2 80.0,420.0" fill="hsl(287 51% var(--lightness))"></polygon><rect class="part" x="736" y="76" width="12" height="12" fill="hsl(287 51% var(--lightness))"></rect><text x="754" y="86">STACK</text></g>
    <g><title>MUT_ARR_PTRS_CLEAN: at most 552 B</title><polygon class="part" points="80.0,420.0 155.2,40.0 351.2,40.0 415.8,40.0 510.9,40.0 602.7,40.0 666.3,40.0 720.0,420.0 720.0,420.0 666.3,40.1 602.7,40.1 510.9,40.1 415.8,40.1 351.2,40.1 155.2,40.1 80.0,420.0" fill="hsl(115 57% var(--lightness))"></polygon><rect class="part" x="736" y="58" width="12" height="12" fill="hsl(115 57% var(--lightness))"></rect><text x="754" y="68">MUT_ARR_PTRS_CLEAN</text></g>
    <g><title>everything else: at most 368 B</title><polygon class="part" points="80.0,420.0 155.2,40.0 351.2,40.0 415.8,40.0 510.9,40.0 602.7,40.0 666.3,40.0 720.0,420.0 720.0,420.0 666.3,40.0 602.7,40.0 510.9,40.0 415.8,40.0 351.2,40.0 155.2,40.0 80.0,420.0" fill="hsl(281 50% var(--lightness))"></polygon><rect class="part" x="736" y="40" width="12" height="12" fill="hsl(281 50% var(--lightness))"></rect><text x="754" y="50">everything else</text></g>
    </svg>
    "#);
    let view = ghc(&place, &["heap", "prog.hp", "--json"]).json();
    assert_eq!(at(&view, "/bands/0/name"), "main:Main.Cell");
    assert_eq!(at(&view, "/peak/bytes"), 3_202_632.0);
}

#[test]
fn a_cost_centre_profile_as_table_and_flame_graph() {
    let place = Place::new();
    sample(&place, "prof-P.trimmed.txt", "prog.prof");
    let words = ["profile", "prog.prof", "--sort", "bytes", "-n", "4", "--export", "prog.svg"];
    assert_snapshot!(ghc(&place, &words).stdout, @r"
    Cost centres of ‘prog.prof’
    33 ticks of the clock, 241 MB allocated; 8 cost centres, sorted by bytes

                                       time            bytes
                               own   in all     own   in all        entered
      Main.main              100 %    100 %   100 %    100 %              1
      GHC.IO.Handle.FD.CAF   0.0 %    0.0 %   0.0 %    0.0 %              0
      GHC.IO.Encoding.CAF    0.0 %    0.0 %   0.0 %    0.0 %              0
      MAIN.MAIN              0.0 %    100 %   0.0 %    100 %              0
    ");
    assert_snapshot!(place.read("prog.svg"), @r#"
    <svg xmlns="http://www.w3.org/2000/svg" class="scruple" width="1200" height="78" viewBox="0 0 1200 78" role="img" aria-label="bytes allocated of ‘prog.prof’">
    <style>
    .scruple{--paper:#fff;--ink:#1c1c1c;--faint:#d8d8d8;--lightness:72%;font:11px ui-monospace,monospace}
    @media(prefers-color-scheme:dark){.scruple{--paper:#16181c;--ink:#e6e6e6;--faint:#3a3d42;--lightness:36%}}
    .scruple .paper{fill:var(--paper)}.scruple text{fill:var(--ink)}.scruple .line{stroke:var(--faint)}
    .scruple .head{font-size:14px;font-weight:bold}
    .scruple .part{stroke:var(--paper);stroke-width:.5}.scruple g:hover .part{stroke:var(--ink)}
    </style>
    <rect class="paper" width="1200" height="78"></rect>
    <text class="head" x="10" y="20">bytes allocated of ‘prog.prof’</text>
    <g><title>MAIN.MAIN: 241 MB (100 %), itself 816 B</title><rect class="part" x="10.00" y="51" width="1180.00" height="16" fill="hsl(80 55% var(--lightness))"></rect><text x="13.00" y="63">MAIN.MAIN</text></g>
    <g><title>Main.main: 241 MB (100 %), itself 241 MB</title><rect class="part" x="10.00" y="34" width="1179.81" height="16" fill="hsl(264 68% var(--lightness))"></rect><text x="13.00" y="46">Main.main</text></g>
    </svg>
    "#);
    sample(&place, "prof-pj.json", "prog.json");
    let view = ghc(&place, &["profile", "prog.json", "--sort", "bytes", "--json"]).json();
    assert_eq!(at(&view, "/cost_centres/0/name"), "Main.main");
    assert_eq!(at(&view, "/bytes"), 240_851_688);
}

#[test]
fn the_profile_of_a_program_that_was_built_here_has_its_calls_and_bytes() {
    let place = Place::new();
    if !has_ghc_profiling(&place) {
        return;
    }
    let source = "module Main where\n\
         twice :: Int -> Integer\ntwice n = toInteger n * 2 ^ (70 :: Int)\n{-# NOINLINE twice #-}\n\
         total :: Int -> Integer\ntotal n = sum (map twice [1 .. n])\n{-# NOINLINE total #-}\n\
         main :: IO ()\nmain = print (total 3000)\n";
    place.write("Main.hs", source);
    let words = ["-v0", "-prof", "-fprof-auto", "-rtsopts", "Main.hs", "-o", "app"];
    let built = Command::new("ghc").args(words).current_dir(place.path()).status();
    assert!(built.is_ok_and(|status| status.success()), "ghc");
    let mut bytes = Vec::new();
    for form in ["-p", "-P", "-pj"] {
        let run = Command::new(place.file("app")).args(["+RTS", form]).current_dir(place.path()).output();
        assert!(run.is_ok_and(|output| output.status.success()), "{form}");
        let view = ghc(&place, &["profile", "app.prof", "--sort", "bytes", "--json"]).json();
        let centres = at(&view, "/cost_centres").as_array().expect("cost centres");
        let twice = centres.iter().find(|one| one["name"] == "Main.twice").expect("twice");
        assert_eq!(twice["entries"], 3000, "{form}: {view:#}");
        assert!(twice["bytes_share"].as_f64().is_some_and(|share| share > 0.3), "{form}: {view:#}");
        bytes.push(twice["bytes"].clone());
        let table = ghc(&place, &["profile", "app.prof"]).stdout;
        assert!(table.contains("let it run longer"), "{form}: {table}");
    }
    // Profiles of `-p` have shares only.
    assert_eq!(bytes[1], bytes[2], "{bytes:?}");
    assert!(bytes[1].as_u64().is_some_and(|bytes| bytes > 3000 * 16), "{bytes:?}");
}

#[test]
fn files_that_are_no_profiles() {
    let place = Place::new();
    place.write("text", "hello\n");
    assert_snapshot!(ghc(&place, &["heap", "text"]).exchange(), @r"
    exit 2
    --- stderr
    error: ‘text’: cannot parse line 1 of the heap profile: ‘hello’
    ");
    assert_snapshot!(ghc(&place, &["profile", "text"]).exchange(), @r"
    exit 2
    --- stderr
    error: ‘text’: the cost-centre profile has no line ‘total alloc’
    ");
    assert_snapshot!(ghc(&place, &["heap", "gone"]).exchange(), @r"
    exit 2
    --- stderr
    error: cannot read ‘gone’: No such file or directory (os error 2)
    ");
}

#[test]
fn the_pauses_of_a_real_program() {
    let place = Place::new();
    if !haskell(&place, "prog", &[]) || !haskell(&place, "closed", &["-rtsopts=none"]) {
        return;
    }
    let view = ghc(&place, &["pauses", "--json", "--", "./prog", "keep", "400000"]).json();
    let all = at(&view, "/generations/0");
    let young = at(&view, "/generations/1/count").as_u64().expect("a count");
    assert!(young > 5 && all["count"].as_u64().is_some_and(|count| count > young), "{view:#}");
    let figure = |key: &str| all[key].as_f64().expect("a time");
    assert!(figure("median") <= figure("p90") && figure("p90") <= figure("max"), "{all}");
    assert!(figure("max") <= figure("total"), "{all}");
    // The error says which linking forbids pauses to be read, and how to allow it.
    let closed = ghc(&place, &["pauses", "--", "./closed", "keep", "1000"]);
    assert!(
        closed.code == 2 && closed.stderr.contains("link it with -rtsopts=some"),
        "{}",
        closed.exchange()
    );
    let other = ghc(&place, &["pauses", "--", "true"]);
    assert!(other.stderr.contains("no Haskell runtime"), "{}", other.exchange());
    let failing = ghc(&place, &["pauses", "--", "./prog"]);
    assert_eq!(failing.code, 4, "{}", failing.exchange());
    assert!(failing.stdout.starts_with("Pauses of ‘./prog’"), "{}", failing.exchange());
    assert!(failing.stderr.contains("‘./prog’ exited with code 1"), "{}", failing.exchange());
    let ignored = ghc(&place, &["pauses", "-i", "--", "./prog"]);
    assert_eq!((ignored.code, ignored.stderr.as_str()), (0, ""), "{}", ignored.exchange());
    assert!(ignored.stdout.starts_with("Pauses of ‘./prog’"), "{}", ignored.exchange());
}

#[test]
fn a_heap_profile_of_a_real_program() {
    let place = Place::new();
    if !haskell(&place, "prog", &["-rtsopts"]) {
        return;
    }
    // `-i0` takes a heap census at every collection, so that a fast machine has several too.
    let words = ["keep", "400000", "+RTS", "-hT", "-i0", "-RTS"];
    let status =
        std::process::Command::new(place.file("prog")).args(words).current_dir(place.path()).output();
    assert!(status.expect("it runs").status.success());
    let view = ghc(&place, &["heap", "prog.hp", "--json", "--export", "chart.svg"]).json();
    // A list of numbers takes 24 bytes for each cell and 16 for each number.
    assert!(at(&view, "/bands/0/most").as_f64().is_some_and(|most| most > 1e6), "{view:#}");
    assert!(place.read("chart.svg").contains("<polygon"));
}

#[test]
fn the_profiles_that_a_haskell_program_can_write_are_listed() {
    let place = Place::new();
    if !haskell(&place, "open", &["-rtsopts"]) || !haskell(&place, "plain", &[]) {
        return;
    }
    let of = |program: &str| place.run(["doctor", "--quick", "--", program]).stdout;
    let open = of("./open");
    assert!(open.contains("heap by closure type: yes"), "{open}");
    assert!(open.contains("profiles by cost centre: no: build it with -prof"), "{open}");
    let plain = of("./plain");
    assert!(plain.contains("heap by closure type: no: link it with -rtsopts"), "{plain}");
}

#[test]
fn figures_that_only_one_runtime_has_can_be_asked_for_by_name() {
    let place = Place::new();
    if !haskell(&place, "plain", &[]) {
        return;
    }
    let of =
        |keys: &str| place.run(["run", "--no-store", "-r", "4", "--metrics", keys, "./plain keep 400000"]);
    assert!(of("ghc").stdout.contains("ghc.copied"), "{}", of("ghc").exchange());
    assert_eq!(of("no-such-runtime").code, 2);
}

#[test]
fn a_heap_profile_without_anything_in_it_says_what_to_do() {
    let place = Place::new();
    let head = "JOB \"prog\"\nDATE \"d\"\nSAMPLE_UNIT \"seconds\"\nVALUE_UNIT \"bytes\"\n";
    place.write(
        "prog.hp",
        format!("{head}BEGIN_SAMPLE 0.0\nEND_SAMPLE 0.0\nBEGIN_SAMPLE 0.01\nEND_SAMPLE 0.01\n"),
    );
    assert_snapshot!(ghc(&place, &["heap", "prog.hp"]).stdout, @r"
    Heap of ‘prog’
    Nothing was live in any of its samples: the program ended before the first that was due; take them
    more often, with +RTS -i0.01.
    ");
}
