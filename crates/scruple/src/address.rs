//! Addresses of stores: an SQLite file, or a database of a PostgreSQL server.

use std::fmt;
use std::path::{Path, PathBuf};

/// The address of a store, as `--store`, `SCRUPLE_STORE` and `[store] url` give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreAddress {
    /// The path of an SQLite file.
    File(PathBuf),
    /// The URL of a database on a PostgreSQL server.
    Server(ServerUrl),
}

/// The URL of a PostgreSQL database. It is shown without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerUrl {
    text: String,
    /// Whether the user named the URL. A URL from a project's configuration is not combined with a password of the
    /// environment.
    pub by_user: bool,
}

impl StoreAddress {
    /// Parses a path, `sqlite:PATH` or `postgres://…`.
    ///
    /// # Errors
    /// A message that says what is wrong with the text.
    pub fn parse(text: &str, by_user: bool) -> Result<StoreAddress, String> {
        match text.split_once("://") {
            Some(("postgres" | "postgresql", _)) => {
                Ok(StoreAddress::Server(ServerUrl { text: text.to_owned(), by_user }))
            }
            Some((scheme, _)) => Err(format!(
                "the store ‘{}’ cannot be used: {scheme} is not supported; name a file, such as sqlite:.scruple/store.db, or a database, such as postgres://host/database",
                without_password(text)
            )),
            None => Ok(StoreAddress::File(PathBuf::from(text.strip_prefix("sqlite:").unwrap_or(text)))),
        }
    }

    /// Returns the same address, with a relative path resolved against a folder.
    pub fn below(self, folder: &Path) -> StoreAddress {
        match self {
            StoreAddress::File(path) => StoreAddress::File(folder.join(path)),
            server => server,
        }
    }
}

impl ServerUrl {
    /// Returns the URL as it was given, including the password.
    pub fn secret(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreAddress::File(path) => path.display().fmt(f),
            StoreAddress::Server(url) => url.fmt(f),
        }
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_password(&self.text))
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

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
        let address = StoreAddress::parse("postgres://ann:s3cret@db/bench", true).expect("an address");
        assert!(!format!("{address} {address:?}").contains("s3cret"));
    }

    #[test]
    fn addresses_are_files_or_servers() {
        let file = |path: &str| Ok(StoreAddress::File(PathBuf::from(path)));
        assert_eq!(StoreAddress::parse("sqlite:a.db", true), file("a.db"));
        assert_eq!(StoreAddress::parse("a.db", true), file("a.db"));
        assert!(matches!(StoreAddress::parse("postgresql://h/d", true), Ok(StoreAddress::Server(_))));
        assert!(
            StoreAddress::parse("mysql://u:p@h/d", true)
                .is_err_and(|why| why.contains("mysql is not") && !why.contains(":p@"))
        );
    }
}
