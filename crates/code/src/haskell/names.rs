//! Names of GHC's symbols. The encoding is described in GHC's `compiler/GHC/Utils/Encoding.hs`.

/// The suffixes that GHC appends to the names of code.
const ENDS: [&str; 7] = ["_info", "_entry", "_ret", "_fast", "_slow", "_con_info", "_con_entry"];

/// The suffix of the name that stands for all functions of a module that cannot be distinguished.
const LOCAL: &str = ".(local functions)";

/// Whether a symbol belongs to code that jumps as Haskell procedures do, rather than to C code.
pub fn is_haskell(symbol: &str) -> bool {
    is_of_runtime(symbol) || module(symbol).is_some()
}

/// Whether a symbol is of code that the runtime has for Haskell procedures: `stg_CAF_BLACKHOLE_info`.
fn is_of_runtime(symbol: &str) -> bool {
    symbol.trim_start_matches('_').starts_with("stg_")
}

fn without_end(symbol: &str) -> Option<&str> {
    ENDS.iter().rev().find_map(|end| symbol.strip_suffix(end))
}

/// The symbol as the source writes it: `base_GHCziList_zdwlenAcc_info` becomes `base:GHC.List.$wlenAcc`.
pub fn shown(symbol: &str) -> String {
    match (module(symbol), without_end(symbol).and_then(|bare| bare.rsplit_once('_'))) {
        (Some(module), Some((_, name))) => format!("{module}.{}", decoded(name)),
        _ => symbol.to_owned(),
    }
}

/// The module of a symbol, with its package: `base:GHC.List`.
pub fn module(symbol: &str) -> Option<String> {
    let bare = without_end(symbol).filter(|_| !is_of_runtime(symbol))?;
    let parts: Vec<&str> = bare.split('_').collect();
    let (package, module) = match parts.as_slice() {
        [package, module, _] => (Some(package), module),
        [module, _] => (None, module),
        _ => return None,
    };
    let module = module.starts_with(|first: char| first.is_ascii_uppercase()).then(|| decoded(module))?;
    Some(package.map_or_else(String::new, |package| decoded(package) + ":") + &module)
}

/// The name that stands for the functions of a module that have no symbol and cannot be distinguished.
pub fn local_functions(module: &str) -> String {
    format!("{module}{LOCAL}")
}

/// Whether a name stands for such indistinguishable functions of a module.
pub fn is_of_module(name: &str) -> bool {
    name.ends_with(LOCAL)
}

/// Whether GHC generated the symbol from a number that changes with each compilation: `s3pC_info`, `c3yJ`.
pub fn is_numbered(symbol: &str) -> bool {
    let bare = without_end(symbol).unwrap_or(symbol);
    let is_word = (2..=8).contains(&bare.len()) && bare.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_word
        && bare.bytes().any(|byte| byte.is_ascii_digit())
        && bare.starts_with(['s', 'r', 'c', 'l', 'n', 'u'])
}

fn decoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        let plain = match letter {
            'z' => match rest.next() {
                Some('a') => '&',
                Some('b') => '|',
                Some('c') => '^',
                Some('d') => '$',
                Some('e') => '=',
                Some('g') => '>',
                Some('h') => '#',
                Some('i') => '.',
                Some('l') => '<',
                Some('m') => '-',
                Some('n') => '!',
                Some('p') => '+',
                Some('q') => '\'',
                Some('r') => '\\',
                Some('s') => '/',
                Some('t') => '*',
                Some('u') => '_',
                Some('v') => '%',
                Some('z') => 'z',
                Some(digit) if digit.is_ascii_digit() => {
                    let number: String = rest.by_ref().take_while(|letter| *letter != 'U').collect();
                    let code = u32::from_str_radix(&format!("{digit}{number}"), 16).ok();
                    code.and_then(char::from_u32).unwrap_or('?')
                }
                _ => return text.to_owned(),
            },
            'Z' => match rest.next() {
                Some('L') => '(',
                Some('R') => ')',
                Some('M') => '[',
                Some('N') => ']',
                Some('C') => ':',
                Some('Z') => 'Z',
                Some(digit) if digit.is_ascii_digit() => {
                    let number: String =
                        rest.by_ref().take_while(|letter| !matches!(letter, 'T' | 'H')).collect();
                    let size: usize = format!("{digit}{number}").parse().unwrap_or(1);
                    out.push_str(&format!("({})", ",".repeat(size.clamp(1, 64) - 1)));
                    continue;
                }
                _ => return text.to_owned(),
            },
            other => other,
        };
        out.push(plain);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_shown_as_in_the_source() {
        for (symbol, name) in [
            ("base_GHCziList_zdwlenAcc_info", "base:GHC.List.$wlenAcc"),
            ("ghczmprim_GHCziClasses_modIntzh_info", "ghc-prim:GHC.Classes.modInt#"),
            ("Main_main1_info", "Main.main1"),
            ("ZCMain_main_info", ":Main.main"),
            ("stg_ap_0_fast", "stg_ap_0_fast"),
            ("ghczmprim_GHCziTuple_Z2T_con_info", "ghc-prim:GHC.Tuple.(,)"),
            ("Main_z2080U_info", "Main.\u{2080}"),
            ("z", "z"),
        ] {
            assert_eq!(shown(symbol), name);
        }
    }

    #[test]
    fn code_of_c_is_not_taken_for_haskells() {
        assert!(is_haskell("Main_main1_info") && is_haskell("stg_ap_0_fast"));
        assert!(!is_haskell("get_info") && !is_haskell("get_user_info") && !is_haskell("scheduleWaitThread"));
        assert_eq!(module("base_GHCziList_zdwlenAcc_info").as_deref(), Some("base:GHC.List"));
        assert_eq!(module("r3uO_info"), None);
        // The library of the runtime has such names, and is C for the most part.
        assert_eq!(module("stg_CAF_BLACKHOLE_info"), None);
        assert!(is_haskell("__stg_EAGER_BLACKHOLE_info"));
    }

    #[test]
    fn numbered_names_are_known() {
        assert!(is_numbered("s3pC_info") && is_numbered("r3m5_info") && is_numbered("c3yJ"));
        assert!(!is_numbered("step") && !is_numbered("Main_main1_info") && !is_numbered("sum"));
    }
}
