use super::super::ScriptSession;
use super::super::tokens::tokens;
use super::functions::TOP;
use super::*;
use scruple_code::UNKNOWN;

/// What is counted of a program that Node runs; `None` without Node.
fn side_by_node(text: &str) -> Option<Side> {
    let place = tempfile::tempdir().expect("a folder");
    let session = ScriptSession::start(Language::JavaScript, place.path()).expect("a session");
    let file = place.path().join("a program.js");
    fs::write(&file, text).expect("a program");
    let run = std::process::Command::new("node").arg(&file).envs(session.env(|_| None)).status().ok()?;
    assert!(run.success());
    let counts = session.read().expect("counts");
    assert_eq!(counts.processes, 1);
    Some(counts.side)
}

/// The functions of a program that Node runs, with their calls and executed tokens; `None` without Node.
fn counted_by_node(text: &str) -> Option<Vec<(String, u64, u64)>> {
    let tree = side_by_node(text)?.tree;
    let shown = tree.contexts[1..].iter().map(|context| {
        let function = &tree.functions[context.function];
        assert_eq!(function.module, PROGRAM);
        (function.name.clone(), context.calls, context.cost.instructions)
    });
    Some(shown.collect())
}

#[test]
fn node_counts_what_each_function_executes() {
    let text = "function often(n) { if (n > 2) { return n }\n  return 0 }\n\
                const all = [1, 2, 3].map((n) => often(n) + often(3));\n";
    let Some(counted) = counted_by_node(text) else {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "skipped: Node is not installed");
        return;
    };
    let of =
        |name: &str| counted.iter().find(|(known, ..)| known == name).map(|(_, calls, own)| (*calls, *own));
    let length = |text: &str| tokens(&units(text)).len() as u64;
    assert_eq!(of("(anonymous)"), Some((3, 3 * length("(n) => often(n) + often(3)"))));
    let (calls, own) = of("often").expect("a function");
    let most = 6 * length("function often(n) { if (n > 2) { return n } return 0 }");
    assert_eq!(calls, 6);
    // The block after the test ran 4 times, what follows it twice.
    let least = 6 * length("function often(n) { if (n > 2)") + 4 * length("{ return n }");
    assert!((least..most).contains(&own), "{own} not in {least}..{most}");
}

#[test]
fn code_in_no_file_is_counted_and_its_text_is_unknown() {
    let place = tempfile::tempdir().expect("a folder");
    let session = ScriptSession::start(Language::JavaScript, place.path()).expect("a session");
    let text = "const given = eval('(function given(n) { return n })'); given(1); new Function('given(2)')()";
    let run = std::process::Command::new("node").args(["-e", text]).envs(session.env(|_| None)).status();
    if run.is_err() {
        return;
    }
    let counts = session.read().expect("counts");
    let side = &counts.side;
    let given = side.tree.functions.iter().position(|one| one.name == "given").expect("a function");
    assert_eq!(side.tree.functions[given].module, GENERATED);
    assert_eq!(side.digests.as_ref().map(|all| all[given]), Some(UNKNOWN));
    let calls = |one: &&Context| one.function == given;
    assert_eq!(side.tree.contexts.iter().find(calls).map(|context| context.calls), Some(2));
}

const TEXT: &str = "function f(n) { if (n) { g() } }\nlet é = () => { f(1) };";

fn covered(name: &str, ranges: &[(usize, usize, u64)]) -> String {
    let ranges: Vec<String> = ranges
        .iter()
        .map(|(start, end, count)| format!(r#"{{"startOffset":{start},"endOffset":{end},"count":{count}}}"#))
        .collect();
    format!(r#"{{"functionName":"{name}","ranges":[{}],"isBlockCoverage":true}}"#, ranges.join(","))
}

fn script(functions: &[String]) -> CoveredScript {
    let text = format!(r#"{{"url":"file:///a%20b.js","functions":[{}]}}"#, functions.join(","));
    serde_json::from_str(&text).expect("a script")
}

fn units(text: &str) -> Vec<u16> {
    text.encode_utf16().collect()
}

fn shown(script: &CoveredScript, text: &str) -> Vec<(String, u64, u64)> {
    functions(script, Some(&units(text))).into_iter().map(|own| (own.name, own.calls, own.executed)).collect()
}

#[test]
fn a_token_counts_as_often_as_the_innermost_block_of_its_function_ran() {
    let end = TEXT.encode_utf16().count();
    let arrow = TEXT.chars().position(|c| c == '=').expect("an arrow") + 2;
    let script = script(&[
        covered("", &[(0, end, 1)]),
        covered("f", &[(0, 32, 10), (23, 30, 4)]),
        covered("", &[(arrow, end - 1, 7)]),
    ]);
    let of = |text: &str| tokens(&units(text)).len() as u64;
    let expected = [
        ("(top level)", 1, of("let é = ;")),
        ("f", 10, 10 * of("function f(n) { if (n) }") + 4 * of("{ g() }")),
        ("(anonymous)", 7, 7 * of("() => { f(1) }")),
    ];
    assert_eq!(shown(&script, TEXT), expected.map(|(name, calls, own)| (name.to_owned(), calls, own)));
    assert_eq!(path_of(&script.url), Some(PathBuf::from("/a b.js")));
    assert_eq!(path_of("node:fs"), None);
}

#[test]
fn a_renamed_or_reformatted_function_is_the_same_code_and_a_changed_one_is_not() {
    let digest = |name: &str, text: &str| {
        let length = text.encode_utf16().count();
        functions(&script(&[covered(name, &[(0, length, 1)])]), Some(&units(text)))[0].digest
    };
    let one = digest("f", "function f(n) { return n }");
    assert_eq!(one, digest("other", "function other(n) {\n  return n\n}"));
    assert_ne!(one, digest("f", "function f(n) { return m }"));
}

#[test]
fn functions_have_the_callers_that_the_text_shows_and_long_names_cost_nothing() {
    let count = |name: &str| {
        let text = format!(
            "class A {{ {name}(n) {{ return n > 0 ? this.{name}(n - 1) : other?.(n) }} }}\n\
             function other(n) {{ return n }}\nconst a = new A();\nfor (const n of [1, 2]) a.{name}(n);\n\
             setTimeout(other);\n"
        );
        side_by_node(&text)
    };
    let (Some(short), Some(long)) = (count("f"), count("much_longer")) else { return };
    let shown = |side: &Side, name: &str| -> Vec<(Option<usize>, u64, u64, u64)> {
        let contexts = side.tree.contexts.iter();
        let of = contexts.filter(|one| side.tree.functions[one.function].name == name);
        of.map(|one| (one.parent, one.calls, one.recursive, one.cost.instructions)).collect()
    };
    let top = 1;
    let [(parent, calls, recursive, cost)] = shown(&short, "f")[..] else { panic!("{:?}", short.tree) };
    assert_eq!((parent, calls, recursive), (Some(top), 2, 3));
    assert_eq!(shown(&long, "much_longer"), [(Some(top), 2, 3, cost)]);
    // One of the three calls of `other` is made by a timer, so that its callers are not known.
    assert_eq!(shown(&short, "other")[0].0, Some(0));
}

#[test]
fn a_function_is_called_by_the_one_that_hands_it_to_a_built_in_method() {
    let text = "function parse(all) { return all.map((n) => n + 1).filter(function (n) { return n > 2 }) }\n\
                parse([1, 2, 3]);\nsetTimeout(() => 1, 1);\n";
    let own = "class Later { map(f) { return () => f(1) } }\nnew Later().map((n) => n)();\n";
    let Some(side) = side_by_node(text) else { return };
    let callers = |side: &Side, name: &str| -> Vec<(String, u64)> {
        let contexts = &side.tree.contexts;
        let function = |index: usize| side.tree.functions[contexts[index].function].name.as_str();
        let of = (1..contexts.len()).filter(|index| function(*index).contains(name));
        let caller = |index: usize| contexts[index].parent.filter(|parent| *parent > 0).map_or("", function);
        of.map(|index| (caller(index).to_owned(), contexts[index].calls)).collect()
    };
    let parse = || ("parse".to_owned(), 3);
    assert_eq!(callers(&side, "parse.(anonymous)"), [parse(), parse()]);
    // The caller of a function that is passed to a timer or to a method of the program is unknown.
    assert!(callers(&side, "(anonymous)").contains(&(String::new(), 1)));
    let side = side_by_node(&format!("{text}{own}")).expect("Node");
    assert_eq!(callers(&side, "parse.(anonymous)"), [(String::new(), 3), parse()]);
}

#[test]
fn a_function_with_a_name_is_called_by_the_only_one_that_hands_it_to_a_built_in_function() {
    let text = "function walk(one) { (one.below || []).forEach(walk) }\n\
                const step = (n) => n + 1;\nfunction more(all) { return all.map(step) }\n\
                function second(text) { return Array.from([text, `${text}(`], upper).join() + text.replace(/a,/g, low) }\n\
                function upper(text) { return text + 1 }\nfunction low(text) { return text + 2 }\n\
                function kept(n) { return n }\nfunction least(a, b) { return a - b }\nfunction other(n) { return n }\n\
                walk({ below: [{}, { below: [{}] }] });\nmore([1, 2, 3]);\nstep(1);\nsecond('a,a,b');\n\
                [1, 2].map(kept);\nconst keeps = { kept };\n[3, 1].map(other);\nfunction hands() { [5].some(other) }\nhands();\n\
                [3, 1].sort(least);\nif (keeps.none) keeps.none = least;\n";
    let Some(side) = side_by_node(text) else { return };
    let contexts = &side.tree.contexts;
    let name = |context: usize| side.tree.functions[contexts[context].function].name.as_str();
    let callers = |of: &str| -> Vec<(&str, u64, u64)> {
        let found = (1..contexts.len()).filter(|index| name(*index) == of);
        let caller = |index: usize| contexts[index].parent.filter(|parent| *parent > 0).map_or("", name);
        found.map(|index| (caller(index), contexts[index].calls, contexts[index].recursive)).collect()
    };
    assert_eq!(callers("walk"), [(TOP, 1, 3)]);
    assert_eq!(callers("step"), [(TOP, 1, 0), ("more", 3, 0)]);
    assert_eq!(callers("upper"), [("second", 2, 0)]);
    assert_eq!(callers("low"), [("second", 2, 0)]);
    assert_eq!(callers("least"), [(TOP, 1, 0)]);
    // An object holds the function, and two functions pass it on.
    assert_eq!(callers("kept"), [("", 2, 0)]);
    assert_eq!(callers("other"), [("", 3, 0)]);
}

#[test]
fn text_that_was_not_executed_is_not_compared() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("a.js");
    let known = |text: &str, covered: &[String]| {
        fs::write(&file, text).expect("a file");
        text_as_executed(&script(covered), &file).is_some()
    };
    let whole = covered("", &[(0, 3, 1)]);
    assert!(known("f()", std::slice::from_ref(&whole)) && known("\u{feff}f()", std::slice::from_ref(&whole)));
    assert!(!known("f ()", std::slice::from_ref(&whole)));
    assert!(!known("f()", &[covered("f", &[(1, 9, 1)])]));
    let unknown = functions(&script(&[whole]), None);
    assert_eq!(unknown[0].digest, UNKNOWN);
}

#[test]
fn functions_are_named_by_those_around_them_and_numbered() {
    let script = script(&[
        covered("", &[(0, 100, 1)]),
        covered("make", &[(0, 50, 1)]),
        covered("", &[(10, 20, 1)]),
        covered("", &[(20, 30, 1)]),
        covered("make", &[(60, 70, 1)]),
    ]);
    let names: Vec<String> = functions(&script, None).into_iter().map(|own| own.name).collect();
    assert_eq!(names, ["(top level)", "make", "make.(anonymous)", "make.(anonymous) #2", "make #2"]);
}

#[test]
fn a_method_has_the_same_name_in_a_class_with_fields() {
    for fields in ["<instance_members_initializer>", "<static_initializer>"] {
        let script = script(&[
            covered("", &[(0, 100, 1)]),
            covered(fields, &[(0, 50, 1)]),
            covered("lex", &[(10, 20, 1)]),
            covered("", &[(12, 15, 1)]),
        ]);
        let names: Vec<String> = functions(&script, None).into_iter().map(|own| own.name).collect();
        assert_eq!(names, ["(top level)", fields, "lex", "lex.(anonymous)"]);
    }
}

#[test]
fn offsets_beyond_the_text_are_no_error() {
    let script = script(&[covered("", &[(0, 900, 1), (800, 900, 3), (950, 20, 3)])]);
    assert_eq!(shown(&script, "f()"), [("(top level)".to_owned(), 1, 3)]);
}

#[test]
fn files_beside_the_program_are_named_without_its_folder() {
    let name = |path: &str| module_of(Path::new(path), Path::new("/a/app.js"));
    assert_eq!(
        ["/a/app.js", "/a/lib/x.js", "/b/y.js"].map(name),
        ["program", "module lib/x.js", "module /b/y.js"]
    );
}
