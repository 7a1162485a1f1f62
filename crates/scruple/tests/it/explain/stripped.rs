//! `scruple explain` on programs without symbols: functions are those of the unwinding table, found in the other
//! version by code, callers and order.

use crate::explain::{adds_up, build, explain, first, pair, source};
use crate::programs::has_valgrind;
use crate::support::{Answer, Place, at};
use std::process::Command;

/// The address of a function in a program that is not stripped.
fn address(place: &Place, program: &str, name: &str) -> u64 {
    let symbols = Command::new("nm").arg(program).current_dir(place.path()).output().expect("nm");
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let line = symbols.lines().find(|line| {
        let symbol = line.rsplit(' ').next().unwrap_or_default();
        symbol == name || symbol.contains(&format!("{}{name}", name.len()))
    });
    let digits = line.and_then(|line| line.split(' ').next()).unwrap_or_default();
    u64::from_str_radix(digits, 16).unwrap_or_else(|_| panic!("{name} is not in {symbols}"))
}

fn strip(place: &Place, programs: &[&str]) {
    let status = Command::new("strip").args(programs).current_dir(place.path()).status();
    assert!(status.is_ok_and(|status| status.success()), "strip");
}

/// Explains the pair with symbols and without: the first rows must be of the same function. Returns the second answer.
fn is_found(place: &Place, function: &str) -> Answer {
    let named = explain(place, &["./old", "./new"]);
    let (name, kind, more) = first(&named);
    assert!(name.contains(function), "{}", named.exchange());
    let begin = address(place, "old", function);
    strip(place, &["old", "new"]);
    let answer = explain(place, &["./old", "./new"]);
    adds_up(&answer);
    let (name, same_kind, same) = first(&answer);
    assert!(name.starts_with(&format!("function at {begin:#x}")), "{begin:#x}: {}", answer.exchange());
    assert!(name.ends_with(" of old (stripped)"), "{}", answer.exchange());
    assert_eq!(same_kind, kind, "{}", answer.exchange());
    assert!((same - more).abs() < more.abs() / 50.0, "{more} is not {same}: {}", answer.exchange());
    let remarks = at(&answer.json(), "/explain/remarks").to_string();
    assert!(remarks.contains("functions without symbols"), "{remarks}");
    answer
}

/// The source with a function before all others, so that all addresses differ.
fn shifted(text: &str) -> String {
    let more = "__attribute__((noinline, used, section(\".text.unlikely\"))) static int more(int n) {\n\
                  for (int i = 0; i < n; i++) n ^= i * 7 + (n << 3);\n  return n;\n}\n";
    text.replacen("__attribute__", &format!("{more}__attribute__"), 1)
}

#[test]
fn a_function_whose_cost_grew_is_found_without_symbols_though_all_addresses_differ() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let call = "all += hash(text, 5);";
    let dearer = source(20, call, "hash").replace("hash *= 16777619u;", "hash *= 16777619u; hash += i;");
    pair(&place, &source(20, call, "hash"), &shifted(&dearer));
    let now = address(&place, "new", "hash");
    let answer = is_found(&place, "hash");
    assert!(first(&answer).0.contains(&format!(", now {now:#x}, ")), "{}", answer.exchange());
    let code = at(&answer.json(), "/explain/counts/0/rows/0/code").clone();
    assert_eq!(code, "changed", "{}", answer.exchange());
}

#[test]
fn a_function_that_calls_more_often_is_found_without_symbols() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let calls = |times: u32| format!("for (volatile int i = 0; i < {times}; i++) all += hash(text, 5);");
    pair(&place, &source(20, &calls(1), "hash"), &shifted(&source(20, &calls(3), "hash")));
    is_found(&place, "parse");
}

#[test]
fn a_function_without_a_counterpart_says_in_which_program_it_is() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let text = source(20, "all += hash(text, 5);", "hash");
    let more = "__attribute__((noinline)) static int more(int n) {\n\
                  for (int i = 0; i < n; i++) n ^= (n << 3) % 77 + i / 3;\n  return n & 1;\n}\nint main(void) {";
    let new = text.replace("int main(void) {", more).replace("all += parse", "all += more(100) + parse");
    pair(&place, &text, &new);
    let begin = address(&place, "new", "more");
    strip(&place, &["old", "new"]);
    let answer = place.run(["explain", "--no-time", "./old", "./new"]);
    let text = answer.unwrapped();
    let line = format!("calls function at {begin:#x} of new (stripped, in B)");
    assert!(text.contains(&line), "{line}: {}", answer.exchange());
}

#[test]
fn programs_without_symbols_that_were_compiled_with_other_flags_are_reported() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let part = |number: usize| {
        format!(
            "__attribute__((noinline)) static unsigned part{number}(unsigned n) {{\n  unsigned all = n;\n\
               for (unsigned i = 0; i < 50 + {number}; i++) all = (all << {}) ^ (all * {}u + i);\n  return all;\n}}\n",
            number + 1,
            number * 38 + 5
        )
    };
    let calls: String = (0..6).map(|number| format!("all ^= part{number}(i); ")).collect();
    let text = format!(
        "{}int main(int count, char **words) {{\n  volatile unsigned all = count;\n\
           for (unsigned i = 0; i < 1000; i++) {{ {calls} }}\n  return 0;\n}}\n",
        (0..6).map(part).collect::<String>()
    );
    let texts = [text.as_str(), &text.replace("50 + 3", "55 + 3")];
    let flags = "another compiler or other flags";
    for (level, is_other) in [("-O1", false), ("-O0", true)] {
        for (name, text, level) in [("old", texts[0], "-O1"), ("new", texts[1], level)] {
            place.write("app.c", text);
            let words = [level, "-s", "-o", name, "app.c"];
            let status = Command::new("cc").args(words).current_dir(place.path()).status();
            assert!(status.is_ok_and(|status| status.success()), "cc");
        }
        let answer = explain(&place, &["./old", "./new"]);
        adds_up(&answer);
        let remarks = at(&answer.json(), "/explain/remarks").to_string();
        assert_eq!(remarks.contains(flags), is_other, "{}", answer.exchange());
    }
}

#[test]
fn equal_programs_without_symbols_have_no_rows_wherever_their_functions_are() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let text = source(20, "all += hash(text, 5);", "hash");
    pair(&place, &text, &shifted(&text));
    strip(&place, &["old", "new"]);
    let answer = explain(&place, &["./old", "./new"]);
    let rows = at(&answer.json(), "/explain/counts/0/rows").as_array().expect("rows").len();
    assert_eq!(rows, 0, "{}", answer.exchange());
}

#[test]
fn a_function_that_one_program_executes_in_one_launch_only_is_not_changed() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let text = "__attribute__((noinline)) unsigned extra(unsigned x) {\n  \
                for (int i = 0; i < 9000; i++) x = x * 31 + i;\n  return x;\n}\n\
                int main(int count, char **words) { return words && count > 1 && extra(count) == 7; }\n";
    build(&place, "one", text);
    strip(&place, &["one"]);
    let page = explain(&place, &["./one more", "./one"]).json();
    assert_eq!(at(&page, "/explain/functions_changed"), 0, "{page:#}");
}

#[test]
fn a_program_with_symbols_is_compared_with_one_without() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let call = "all += hash(text, 5);";
    pair(&place, &source(20, call, "hash"), &shifted(&source(22, call, "hash")));
    strip(&place, &["new"]);
    let answer = explain(&place, &["./old", "./new"]);
    assert_eq!(first(&answer).0, "hash", "{}", answer.exchange());
}

/// Compiles two sources as `old` and `new` with a compiler; false if it is not installed.
fn compiled(place: &Place, compiler: &str, flags: &[&str], ending: &str, sources: [&str; 2]) -> bool {
    for (name, text) in ["old", "new"].into_iter().zip(sources) {
        let file = format!("{name}.{ending}");
        place.write(&file, text);
        let command = Command::new(compiler)
            .args(flags)
            .args(["-o", name, &file])
            .env("CGO_ENABLED", "0")
            .current_dir(place.path())
            .status();
        match command {
            Ok(status) => assert!(status.success(), "{compiler}"),
            Err(_) => return false,
        }
    }
    true
}

#[test]
fn functions_of_cplusplus_and_rust_are_found_without_symbols() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let cplusplus = |extra: &str| {
        format!(
            "#include <string>\n#include <vector>\n\
             struct Table {{ std::vector<std::string> words;\n\
               __attribute__((noinline)) unsigned score(const std::string &text) {{\n\
                 unsigned sum = 1; for (char one : text) {{ sum = sum * 31 + one; {extra} }}\n\
                 __asm__ volatile(\"\" : \"+r\"(sum)); return sum; }}\n\
               __attribute__((noinline)) unsigned all() {{\n\
                 unsigned sum = 0; for (auto &word : words) sum += score(word); return sum; }} }};\n\
             int main() {{\n  Table table;\n\
               for (int i = 0; i < 500; i++) table.words.push_back(std::to_string(i) + \"some words\");\n\
               unsigned sum = 0;\n  for (int i = 0; i < 10; i++) sum += table.all();\n  return sum == 7;\n}}\n"
        )
    };
    let both = [cplusplus(""), cplusplus("sum ^= sum >> 7;")];
    assert!(compiled(&place, "c++", &["-O1"], "cc", both.each_ref().map(String::as_str)));
    is_found(&place, "score");
    let place = Place::new();
    let rust = |extra: &str| {
        format!(
            "#[inline(never)]\nfn score(text: &str) -> u32 {{\n\
               let mut sum = 1u32;\n  for one in text.bytes() {{ sum = sum.wrapping_mul(31) + u32::from(one) % 7; {extra} }}\n\
               std::hint::black_box(sum)\n}}\n\
             fn main() {{\n  let words: Vec<String> = (0..500).map(|i| format!(\"{{i}} some words\")).collect();\n\
               let sum = (0..10).flat_map(|_| &words).fold(0u32, |sum, word| sum.wrapping_add(score(word)));\n\
               std::process::exit(i32::from(sum == 7));\n}}\n"
        )
    };
    let both = [rust(""), rust("sum ^= sum >> 7;")];
    if compiled(
        &place,
        "rustc",
        &["-O", "-C", "debug-assertions=no"],
        "rs",
        both.each_ref().map(String::as_str),
    ) {
        is_found(&place, "score");
    }
}

#[test]
fn programs_without_symbols_are_found_behind_wrappers_and_never_called_the_same() {
    if !has_valgrind() {
        return;
    }
    let place = Place::new();
    let call = "all += hash(text, 5);";
    pair(&place, &source(20, call, "hash"), &source(30, call, "hash"));
    let begin = address(&place, "old", "hash");
    strip(&place, &["old", "new"]);
    let answer = explain(&place, &["env A=1 ./old", "env A=2 ./new"]);
    let row = at(&answer.json(), "/explain/counts/0/rows/0").clone();
    assert_eq!(row["function"], format!("function at {begin:#x} of old (stripped)").as_str());
    assert_eq!(row["code"], "changed", "{}", answer.exchange());
    // Children with other names are not compared, so nothing is known of their code.
    let answer = explain(&place, &["sh -c './old; :'", "sh -c './new; :'"]);
    let sentences = at(&answer.json(), "/explain/sentences").to_string();
    assert!(sentences.contains("other code cannot be compared (of new, old)"), "{sentences}");
}
