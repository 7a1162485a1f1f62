//! Hides secrets in words of a command line: passwords, values of headers, parameters of URLs, and variables.

/// Removes the password from a text that contains the URL of a database, such as a word of a command line.
pub fn without_password(text: &str) -> String {
    let Some((before, rest)) = text.split_once("://") else { return text.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => format!("{}@{host}", user.split(':').next().unwrap_or_default()),
        None => authority.to_owned(),
    };
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let kept: Vec<&str> =
        query.split('&').filter(|part| !part.is_empty() && !part.starts_with("password=")).collect();
    let mark = if kept.is_empty() { "" } else { "?" };
    format!("{before}://{authority}{path}{mark}{}", kept.join("&"))
}

/// The headers whose values describe a request, and are not secret.
const PLAIN_HEADERS: [&str; 16] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
    "content-encoding",
    "content-language",
    "content-type",
    "expect",
    "host",
    "if-modified-since",
    "origin",
    "range",
    "te",
    "user-agent",
];

/// The parts of names of parameters whose values are secrets.
const SECRET: [&str; 13] = [
    "apikey",
    "auth",
    "authorization",
    "credential",
    "jwt",
    "passwd",
    "password",
    "pwd",
    "secret",
    "session",
    "sig",
    "signature",
    "token",
];

/// The text that replaces a secret.
const HIDDEN: &str = "***";

/// Returns words of a command line as results show them: without passwords, without the values of parameters of URLs
/// and of variables whose names say that they are secrets, and without the values of headers other than those that
/// describe a request.
pub fn without_secrets(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut option = String::new();
    let hidden = |word: String| {
        let is_value_of = |options: &[&str]| options.contains(&option.as_str());
        let header = match is_value_of(&["-H", "--header"]) {
            true => Some(word.as_str()),
            false => ["--header=", "-H"].iter().find_map(|option| word.strip_prefix(option)),
        };
        let variable =
            if is_value_of(&["--env"]) { Some(word.as_str()) } else { word.strip_prefix("--env=") };
        let shown = match (header.filter(|header| !header.is_empty()), variable.and_then(secret_of)) {
            (Some(header), _) => format!("{}{}", &word[..word.len() - header.len()], without_value(header)),
            (None, Some(value)) => format!("{}{HIDDEN}", &word[..word.len() - value.len()]),
            (None, None) => without_variables(&without_parameters(&without_password(&word))),
        };
        // The value of an option is no option.
        option = if is_value_of(&["-H", "--header", "--env"]) { String::new() } else { word };
        shown
    };
    words.into_iter().map(hidden).collect()
}

/// Hides the values of variables in a command, such as ‘API_TOKEN=x ./app’, each up to the end of its word in a shell.
fn without_variables(command: &str) -> String {
    let (mut quote, mut is_escaped) = (None, false);
    let ends_word = |c: char| {
        match (quote, c) {
            _ if is_escaped => is_escaped = false,
            (None | Some('"'), '\\') => is_escaped = true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, _) if c.is_whitespace() => return true,
            _ => {}
        }
        false
    };
    let shown = |word: &str| match secret_of(word) {
        Some(value) => {
            let (before, space) = (word.len() - value.len(), word.trim_end().len());
            format!("{}{HIDDEN}{}", &word[..before], &word[space.max(before)..])
        }
        None => word.to_owned(),
    };
    command.split_inclusive(ends_word).map(shown).collect()
}

/// Returns the value of a variable whose name says that it is a secret, and the rest of the text after it.
fn secret_of(text: &str) -> Option<&str> {
    let (name, value) = text.split_once('=')?;
    (is_variable(name) && is_secret(name)).then_some(value)
}

/// Whether a shell takes a text as the name of a variable.
fn is_variable(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether a name says that its value is a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let parts: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    parts.iter().any(|part| SECRET.contains(part))
        || parts.windows(2).any(|pair| matches!(pair, ["api" | "access" | "secret" | "private", "key"]))
        || ["token", "secret", "password"].iter().any(|end| name.ends_with(end))
}

/// Hides the value of a header such as ‘Authorization: Bearer x’, unless it is not secret.
fn without_value(header: &str) -> String {
    match header.split_once(':') {
        Some((name, _)) if !PLAIN_HEADERS.contains(&name.trim().to_ascii_lowercase().as_str()) => {
            format!("{name}: {HIDDEN}")
        }
        _ => header.to_owned(),
    }
}

/// Hides the values of those parameters of a URL or a path whose names say that they are secrets, such as
/// ‘access_token’ or ‘X-Amz-Signature’.
pub fn without_parameters(text: &str) -> String {
    let Some((before, query)) = text.split_once('?') else { return text.to_owned() };
    let shown = |part: &str| match part.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}={HIDDEN}"),
        _ => part.to_owned(),
    };
    let (query, fragment) = match query.split_once('#') {
        Some((query, fragment)) => (query, format!("#{fragment}")),
        None => (query, String::new()),
    };
    let parts: Vec<String> = query.split('&').map(shown).collect();
    format!("{before}?{}{fragment}", parts.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_on_a_command_line_are_hidden_and_what_describes_a_request_is_not() {
        let words = |text: &str| -> Vec<String> { text.split('|').map(str::to_owned).collect() };
        for (given, shown) in [
            ("load|-H|Authorization: Bearer x|:80", "load|-H|Authorization: ***|:80"),
            ("-HCookie:a=b|--header=X-Api-Key: k", "-HCookie: ***|--header=X-Api-Key: ***"),
            (
                "--header|Accept: text/html|-HContent-Type: a/b",
                "--header|Accept: text/html|-HContent-Type: a/b",
            ),
            ("-H|-H|-H", "-H|-H|-H"),
            ("http://h/a?page=2&access_token=x#top", "http://h/a?page=2&access_token=***#top"),
            ("--env|API_TOKEN=x|--env=DB_PASSWORD=a=b", "--env|API_TOKEN=***|--env=DB_PASSWORD=***"),
            ("TOKEN=x ./app a=b|--env|MODE=fast", "TOKEN=*** ./app a=b|--env|MODE=fast"),
            ("--env|API_TOKEN=x y|TOKEN='x y' ./app", "--env|API_TOKEN=***|TOKEN=*** ./app"),
            (
                r#"env A=1 TOKEN=x\ y"z \" z" make TOKEN= DB_PWD=é"#,
                "env A=1 TOKEN=*** make TOKEN=*** DB_PWD=***",
            ),
            (
                "--env|DB=postgres://ann:x@db/b|--env=U=h?sig=x",
                "--env|DB=postgres://ann@db/b|--env=U=h?sig=***",
            ),
            (
                ":80/?X-Amz-Signature=a&key=user1&accessToken=t",
                ":80/?X-Amz-Signature=***&key=user1&accessToken=***",
            ),
            ("new=http://h/?api_key=k&n=1", "new=http://h/?api_key=***&n=1"),
            ("http://h/?monkey=1&design=2&author=3", "http://h/?monkey=1&design=2&author=3"),
            ("postgres://ann:x@db/bench?sslmode=disable", "postgres://ann@db/bench?sslmode=disable"),
            ("what?|a?b", "what?|a?b"),
        ] {
            assert_eq!(without_secrets(words(given)), words(shown), "{given}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for (given, shown) in [
            ("postgres://ann:s3cret@db.example:5433/bench", "postgres://ann@db.example:5433/bench"),
            ("postgres://ann:a@b:c@db/bench", "postgres://ann@db/bench"),
            ("postgres:///bench?host=/run/pg&password=x&user=ann", "postgres:///bench?host=/run/pg&user=ann"),
            ("postgres://db/bench?password=x", "postgres://db/bench"),
            ("--store=postgres://ann:x@db/bench", "--store=postgres://ann@db/bench"),
            ("postgres://db", "postgres://db"),
            ("store.db", "store.db"),
        ] {
            assert_eq!(without_password(given), shown);
        }
    }
}
