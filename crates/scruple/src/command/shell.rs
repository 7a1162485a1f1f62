//! Splits commands into words, and recognises those that need a shell.

use super::args::LaunchArgs;
use crate::fault::Fault;

/// Splits a command into words. Returns an error if it contains something that only a shell understands.
pub fn words(command: &str) -> Result<Vec<String>, Fault> {
    if let Some(sign) = shell_sign(command) {
        return Err(Fault::usage(format!(
            "‘{command}’ uses {sign}, which only a shell understands: quote it, or run it in a shell: sh -c 'COMMAND' \
             (with `scruple run`, -S sh does that and shows what the shell costs)"
        )));
    }
    let words = shell_words::split(command)
        .map_err(|_| Fault::usage(format!("‘{command}’ has a quote that does not end: close it")))?;
    match words.is_empty() {
        true => Err(Fault::usage("an empty command cannot be weighed: name a program")),
        false => Ok(words),
    }
}

/// Commands that a shell runs itself, because they change the shell or ask it. A program of such a name could not.
const OF_THE_SHELL: [&str; 15] = [
    ".", "cd", "command", "eval", "exec", "exit", "export", "read", "set", "trap", "type", "ulimit", "umask",
    "unset", "wait",
];

/// Names the first part of a command, outside quotes, that only a shell interprets.
pub fn shell_sign(command: &str) -> Option<String> {
    let mut quote = None;
    let mut characters = command.chars().peekable();
    let first = command.split_whitespace().next().unwrap_or("");
    if let Some((name, _)) = first.split_once('=')
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    {
        return Some(format!("‘{first}’ before the program (or name it through `env`)"));
    }
    if OF_THE_SHELL.contains(&first) {
        return Some(format!("‘{first}’"));
    }
    let (mut in_word, mut in_command) = (false, false);
    while let Some(c) = characters.next() {
        let begins_word = !in_word && quote.is_none();
        in_word = quote.is_some() || !c.is_whitespace();
        in_command |= in_word;
        match (quote, c) {
            (None, '\\') => {
                characters.next();
            }
            (None, '~') if begins_word => return Some("‘~’".to_owned()),
            (None, '\n') if in_command && characters.clone().any(|c| !c.is_whitespace()) => {
                return Some("a line break".to_owned());
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (Some('"'), '\\') => {
                characters.next();
            }
            (None | Some('"'), '`') => return Some(format!("‘{c}’")),
            (None | Some('"'), '$')
                if characters
                    .peek()
                    .is_some_and(|next| next.is_alphanumeric() || "({_?@*#$!-".contains(*next)) =>
            {
                return Some("‘$’".to_owned());
            }
            (None, '|' | '&' | ';' | '<' | '>' | '(' | ')' | '*' | '?') => return Some(format!("‘{c}’")),
            _ => {}
        }
    }
    None
}

/// The shell in which commands run, and a remark if the user did not request it.
#[derive(Debug, Default, PartialEq)]
pub struct Shell {
    /// The words of the shell; `None` if commands are started directly.
    pub words: Option<Vec<String>>,
    /// The reason why a shell is used although the user did not request one.
    pub remark: Option<String>,
}

impl Shell {
    /// Returns the requested shell, or sh if one of these commands needs a shell.
    pub fn of(args: &LaunchArgs, mut commands: impl Iterator<Item = String>) -> Result<Shell, Fault> {
        let asked = |words: Vec<String>| Shell { words: Some(words), remark: None };
        match args.shell.as_deref() {
            None if args.no_shell => Ok(Shell::default()),
            None => {
                let needs = commands.find_map(|command| shell_sign(&command).map(|sign| (command, sign)));
                Ok(needs.map_or_else(Shell::default, |(command, sign)| Shell {
                    words: Some(vec!["sh".to_owned()]),
                    remark: Some(format!(
                        "all commands ran in sh, since ‘{command}’ uses {sign}; its cost is the row of ‘sh -c’ (with -N, such commands are refused)"
                    )),
                }))
            }
            Some("none") => Ok(Shell::default()),
            Some("default") => Ok(asked(vec!["sh".to_owned()])),
            Some(text) => words(text).map(asked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_as_a_shell_would() {
        assert_eq!(words("gzip -k 'a b' c\\ d").expect("words"), ["gzip", "-k", "a b", "c d"]);
        assert!(words("").is_err());
        assert!(words("echo 'open").is_err());
    }

    #[test]
    fn shell_syntax_is_refused_and_named() {
        for (command, sign) in [
            ("a | b", "|"),
            ("a > b", ">"),
            ("echo $HOME", "$"),
            ("A=1 b", "A=1"),
            ("ls *.c", "*"),
            ("kill $$", "$"),
            ("echo $!", "$"),
            ("echo \"$-\"", "$"),
            ("wc ~/notes", "~"),
            ("sleep 1\nsleep 2", "line break"),
            ("exit 1", "‘exit’"),
            (" ulimit -n", "‘ulimit’"),
        ] {
            let message = words(command).expect_err("needs a shell").message;
            assert!(message.contains(sign) && message.contains("-S sh"), "{message}");
        }
        assert!(words("awk '{print $1}' x").is_ok());
        assert!(words("grep 'a|b' x").is_ok());
        assert!(words("./exit 1").is_ok() && words("env exit").is_ok());
        assert!(words("cp a~ '~' \"~\" x:~ $").is_ok());
        assert_eq!(words("\n[ -f x ]\n").expect("words"), ["[", "-f", "x", "]"]);
        assert_eq!(words("sort 'a\nb' \\\n c").expect("words"), ["sort", "a\nb", "c"]);
    }
}
