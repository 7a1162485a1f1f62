//! Addresses of stores: an SQLite file, or a database of a PostgreSQL server.

use crate::secrets::without_password;
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
            None => match PathBuf::from(text.strip_prefix("sqlite:").unwrap_or(text)) {
                // A user who removes a folder of this name by hand easily removes the home folder.
                path if path.starts_with("~") => Err(format!(
                    "the store ‘{text}’ would be in a folder with the name ‘~’, because no shell has replaced it: write \
                     the path in full"
                )),
                path => Ok(StoreAddress::File(path)),
            },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let address = StoreAddress::parse("postgres://ann:s3cret@db/bench", true).expect("an address");
        assert!(!format!("{address} {address:?}").contains("s3cret"));
    }

    #[test]
    fn addresses_are_files_or_servers() {
        let file = |path: &str| Ok(StoreAddress::File(PathBuf::from(path)));
        assert_eq!(StoreAddress::parse("sqlite:a.db", true), file("a.db"));
        assert_eq!(StoreAddress::parse("a.db", true), file("a.db"));
        assert!(StoreAddress::parse("~/a.db", true).is_err() && StoreAddress::parse("~a.db", true).is_ok());
        assert!(matches!(StoreAddress::parse("postgresql://h/d", true), Ok(StoreAddress::Server(_))));
        assert!(
            StoreAddress::parse("mysql://u:p@h/d", true)
                .is_err_and(|why| why.contains("mysql is not") && !why.contains(":p@"))
        );
    }
}
