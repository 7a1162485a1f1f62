//! Recognises interpreters, which run programs in their own languages. The functions that are counted are not those of
//! the script.

use scruple_code::Side;
use scruple_measure::calltree::Language;
use std::collections::HashMap;

/// The beginning of the file name of each interpreter, and the tool that reports the functions of its scripts.
const INTERPRETERS: [(&str, &str); 10] = [
    ("python", "`python3 -m cProfile`"),
    ("pypy", "`pypy3 -m cProfile`"),
    ("node", "`node --cpu-prof`, which samples,"),
    ("jvm", "Java’s flight recorder, which samples,"),
    ("guile", "Guile’s `(statprof)`, which samples,"),
    ("ruby", "a sampling profiler"),
    ("perl", "a profiler of Perl’s"),
    ("php", "a sampling profiler"),
    ("luajit", "`luajit -jp`, which samples,"),
    ("lua", "a profiler of Lua’s"),
];

/// The share of the counts from which a program counts as running in an interpreter.
const SHARE: f64 = 0.5;

/// Returns the remark about functions if an interpreter runs the program. `counted` says that the
/// functions of the script were counted as well.
pub fn remark(side: &Side, counted: bool) -> Option<String> {
    let word = of(side)?;
    let (_, tool) = INTERPRETERS.iter().find(|(known, _)| *known == word)?;
    Some(match counted {
        true => format!(
            "{word} runs programs in its own language: instructions are those of the interpreter’s own functions; what the \
             script’s functions execute is counted in {}",
            language(side).map_or("units of the script", Language::word)
        ),
        false => format!(
            "{word} runs programs in its own language: functions here are the interpreter’s own, counted exactly; they do not show for which functions of the script they ran, but {tool} does"
        ),
    })
}

/// Returns the language whose functions the interpreter of a program can count.
pub fn language(side: &Side) -> Option<Language> {
    match by_files(side)? {
        "python" => Some(Language::Python),
        "node" => Some(Language::JavaScript),
        "ruby" => Some(Language::Ruby),
        "guile" => Some(Language::Guile),
        _ => None,
    }
}

/// Returns the language in which both programs are counted by their own functions, if there is one.
pub fn common_language([first, second]: [&Side; 2]) -> Option<Language> {
    language(first).filter(|of_first| language(second) == Some(*of_first))
}

/// Returns the interpreter that runs the program, by the beginning of its file's name: the one that executed most of the
/// instructions, or the one that is the program of processes with most of them. Of a short script, libraries execute most
/// when the interpreter starts.
pub fn of(side: &Side) -> Option<&'static str> {
    by_files(side).or_else(|| by_programs(side))
}

fn by_programs(side: &Side) -> Option<&'static str> {
    let all: f64 = side.programs.iter().map(|(_, instructions)| *instructions as f64).sum();
    let found = INTERPRETERS.iter().find(|(word, _)| {
        let is_its = |file: &str| is_of(file, word) || (*word == "jvm" && file == "java");
        let of = side.programs.iter().filter(|(path, _)| is_its(path.rsplit('/').next().unwrap_or(path)));
        of.map(|(_, instructions)| *instructions as f64).sum::<f64>() > SHARE * all
    });
    found.map(|(word, _)| *word)
}

/// Code that an interpreter generated from the script counts for it.
fn by_files(side: &Side) -> Option<&'static str> {
    let mut of_functions = vec![0_u64; side.functions.len()];
    for context in &side.tree.contexts {
        let sum = &mut of_functions[context.function];
        *sum = sum.saturating_add(context.cost.instructions);
    }
    let mut sums: HashMap<&str, u64> = HashMap::new();
    let mut all = 0_u64;
    for (function, own) in side.functions.iter().zip(of_functions) {
        all = all.saturating_add(own);
        let object = function.object.as_deref().unwrap_or_default();
        let sum = sums.entry(object.rsplit('/').next().unwrap_or_default()).or_default();
        *sum = sum.saturating_add(own);
    }
    let generated = sums.get("").copied().unwrap_or_default();
    let found = INTERPRETERS.iter().find(|(word, _)| {
        let of = sums.iter().filter(|(file, _)| is_of(file, word)).map(|(_, sum)| *sum).sum::<u64>();
        of > 0 && of.saturating_add(generated) as f64 > SHARE * all as f64
    });
    found.map(|(word, _)| *word)
}

/// Whether a file belongs to an interpreter, such as `python3.11` or `libpython3.11.so.1.0`.
fn is_of(file: &str, word: &str) -> bool {
    let bare = file.strip_prefix("lib").unwrap_or(file);
    let rest = bare.strip_prefix(word);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::{is_of, of};
    use scruple_code::{ProfileFunction, Side};
    use scruple_core::explain::{self, Context, OwnCost};

    #[test]
    fn generated_code_counts_for_the_interpreter_that_generated_it() {
        let side = |files: [(Option<&str>, u64); 2]| {
            let mut side = Side::default();
            for (file, instructions) in files {
                let own = ProfileFunction { object: file.map(str::to_owned), ..ProfileFunction::default() };
                let function = side.add_function(own, explain::Function::default());
                let cost = OwnCost { instructions, ..OwnCost::default() };
                side.tree.contexts.push(Context { function, cost, ..Context::default() });
            }
            side
        };
        assert_eq!(of(&side([(Some("/usr/lib/libguile-3.0.so.1"), 3), (None, 97)])), Some("guile"));
        assert_eq!(of(&side([(Some("/usr/bin/app"), 3), (None, 97)])), None);
        assert_eq!(of(&side([(Some("/usr/bin/node"), 30), (Some("/usr/bin/app"), 70)])), None);
    }

    #[test]
    fn a_program_that_is_an_interpreter_is_one_even_if_libraries_execute_most() {
        let mut side = Side::default();
        let of_programs = |side: &mut Side, programs: &[(&str, u64)]| {
            side.programs = programs.iter().map(|(file, all)| ((*file).to_owned(), *all)).collect();
            of(side)
        };
        assert_eq!(of_programs(&mut side, &[("/usr/bin/dash", 9), ("/usr/bin/php8.2", 90)]), Some("php"));
        assert_eq!(of_programs(&mut side, &[("/usr/lib/jvm/bin/java", 9)]), Some("jvm"));
        assert_eq!(of_programs(&mut side, &[("/usr/bin/php8.2", 9), ("/usr/bin/app", 90)]), None);
    }

    #[test]
    fn interpreters_are_known_by_their_files() {
        assert!(is_of("python3.11", "python") && is_of("libpython3.11.so.1.0", "python"));
        assert!(is_of("libjvm.so", "jvm") && is_of("guile", "guile") && is_of("libguile-3.0.so.1", "guile"));
        assert!(!is_of("pythonista", "python") && !is_of("app", "python"));
    }
}
