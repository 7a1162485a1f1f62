//! PostgreSQL: a store on a server that several machines share.

use super::encrypted::Encryption;
use super::{DatabaseEngine, DatabaseFailure, LOCK_WAIT, Refusal, SqlValue, StoredRow};
use crate::address::ServerUrl;
use bytes::BytesMut;
use postgres::config::{Host, SslMode};
use postgres::error::SqlState;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Config, Statement};
use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A connection to a server. If it is lost, the next transaction opens a new one.
pub(super) struct Postgres {
    server: ServerAccess,
    session: RefCell<PostgresSession>,
}

/// The parameters for connecting to a server.
struct ServerAccess {
    config: Config,
    encryption: Encryption,
}

/// The condition of a row of `pg_class` that is a table of the schema in use, whatever characters its name has.
const OWN_TABLES: &str =
    "relkind = 'r' AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())";

struct PostgresSession {
    client: Client,
    statements: HashMap<String, Statement>,
    /// Whether a statement of the current transaction failed. PostgreSQL would then answer COMMIT without an error.
    failed: bool,
}

impl Postgres {
    /// Connects to the server.
    pub(super) fn connect(url: &ServerUrl) -> Result<Postgres, DatabaseFailure> {
        let server = ServerAccess::of(url)?;
        let session = RefCell::new(server.session()?);
        Ok(Postgres { server, session })
    }

    /// Begins a transaction by these statements, on a new connection if the present one is lost.
    fn begin_with(&self, statements: &str) -> Result<(), DatabaseFailure> {
        let lost = self.session.borrow().client.is_closed();
        if lost {
            *self.session.borrow_mut() = self.server.session()?;
        }
        self.session.borrow_mut().failed = false;
        self.batch(statements).inspect_err(|_| self.rollback())
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&mut PostgresSession) -> Result<T, postgres::Error>,
    ) -> Result<T, DatabaseFailure> {
        let mut session = self.session.borrow_mut();
        let result = work(&mut session);
        session.failed |= result.is_err();
        result.map_err(|error| failure(&error, session.client.is_closed()))
    }
}

impl ServerAccess {
    fn of(url: &ServerUrl) -> Result<ServerAccess, DatabaseFailure> {
        let parts = UrlParts::of(url.secret());
        let mut config: Config = parts.url.parse().map_err(|error: postgres::Error| {
            refused(Refusal::Other, format!("the URL cannot be read: {}", words(&error)))
        })?;
        config.application_name("scruple");
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(10));
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(Duration::from_secs(30));
        }
        if config.get_user().is_none()
            && let Some(user) = ["PGUSER", "USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok())
        {
            config.user(&user);
        }
        if config.get_password().is_none()
            && url.by_user
            && let Ok(password) = std::env::var("PGPASSWORD")
        {
            config.password(password);
        }
        let plain = parts.mode.as_deref() == Some("disable")
            || (config.get_hosts().iter().all(is_here) && !matches!(config.get_ssl_mode(), SslMode::Require));
        let encryption = match plain {
            true => {
                config.ssl_mode(SslMode::Disable);
                Encryption::none()
            }
            false => {
                let setup = scruple_measure::load::client_tls(parts.certificates.as_deref())
                    .map_err(|why| refused(Refusal::Other, why))?;
                // Network connections are encrypted, and the server's certificate is checked, unless the URL says
                // otherwise.
                config.ssl_mode(SslMode::Require);
                Encryption::by(setup)
            }
        };
        Ok(ServerAccess { config, encryption })
    }

    fn session(&self) -> Result<PostgresSession, DatabaseFailure> {
        let client = self.config.connect(self.encryption.clone()).map_err(|error| failure(&error, true))?;
        Ok(PostgresSession { client, statements: HashMap::new(), failed: false })
    }
}

/// The parts of a URL that the library does not support, and the rest of the URL.
struct UrlParts {
    url: String,
    mode: Option<String>,
    certificates: Option<PathBuf>,
}

impl UrlParts {
    fn of(url: &str) -> UrlParts {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut parts = UrlParts { url: base.to_owned(), mode: None, certificates: None };
        let mut kept = Vec::new();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("sslmode", mode)) => {
                    parts.mode = Some(mode.to_owned());
                    // The stricter modes of other programs are the default here.
                    let known = if mode.starts_with("verify") { "require" } else { mode };
                    kept.push(format!("sslmode={}", if known == "allow" { "prefer" } else { known }));
                }
                Some(("sslrootcert", path)) => {
                    parts.certificates = Some(PathBuf::from(path.replace("%2F", "/").replace("%2f", "/")));
                }
                _ => kept.push(part.to_owned()),
            }
        }
        if !kept.is_empty() {
            parts.url = format!("{base}?{}", kept.join("&"));
        }
        parts
    }
}

/// Whether the connection stays on this machine.
fn is_here(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

impl PostgresSession {
    fn statement(&mut self, sql: &str) -> Result<Statement, postgres::Error> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql)?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

impl DatabaseEngine for Postgres {
    fn execute(&self, sql: &str, values: &[SqlValue]) -> Result<usize, DatabaseFailure> {
        self.with(|session| {
            let statement = session.statement(sql)?;
            session.client.execute(&statement, &parameters(values)).map(|count| count as usize)
        })
    }

    fn query(&self, sql: &str, values: &[SqlValue]) -> Result<Vec<StoredRow>, DatabaseFailure> {
        let rows = self.with(|session| {
            let statement = session.statement(sql)?;
            session.client.query(&statement, &parameters(values))
        })?;
        Ok(rows.iter().map(row).collect())
    }

    fn batch(&self, sql: &str) -> Result<(), DatabaseFailure> {
        self.with(|session| session.client.batch_execute(sql))
    }

    fn prepare_to_write(&self) -> Result<(), DatabaseFailure> {
        Ok(())
    }

    fn begin(&self) -> Result<(), DatabaseFailure> {
        self.begin_with(&format!(
            "BEGIN; SET LOCAL lock_timeout = '{}s'; \
             SELECT pg_advisory_xact_lock(hashtext('scruple.' || current_schema()))",
            LOCK_WAIT.as_secs()
        ))
    }

    fn begin_reading(&self) -> Result<(), DatabaseFailure> {
        // With the default level, each query would see what others have committed since the one before.
        self.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    }

    fn commit(&self) -> Result<(), DatabaseFailure> {
        if self.session.borrow().failed {
            let message = "a statement of a transaction failed, and nothing of it is kept".to_owned();
            return Err(refused(Refusal::Other, message));
        }
        self.batch("COMMIT")
    }

    fn rollback(&self) {
        // A failed rollback means that the transaction is gone already.
        let _ = self.batch("ROLLBACK");
    }

    fn tables(&self) -> Result<Vec<String>, DatabaseFailure> {
        // Not the information schema, which conceals the tables that this user may not read.
        let rows = self.query(&format!("SELECT relname::text FROM pg_class WHERE {OWN_TABLES}"), &[])?;
        let schema = || self.query("SELECT current_schema()::text WHERE current_schema() IS NOT NULL", &[]);
        if rows.is_empty() && schema()?.is_empty() {
            let message = "there is no schema of the search path that this user may use".to_owned();
            return Err(refused(Refusal::Denied, message));
        }
        rows.iter().map(|row| row.text(0).map(str::to_owned)).collect()
    }

    fn damage(&self) -> Result<Vec<String>, DatabaseFailure> {
        // The server checks its own pages, and enforces foreign keys for every client.
        Ok(Vec::new())
    }

    fn compact(&self) -> Result<(), DatabaseFailure> {
        let tables =
            self.query(&format!("SELECT quote_ident(relname) FROM pg_class WHERE {OWN_TABLES}"), &[])?;
        tables.iter().try_for_each(|table| self.batch(&format!("VACUUM {}", table.text(0)?)))
    }

    fn size(&self) -> Result<u64, DatabaseFailure> {
        let sum = "SELECT SUM(pg_total_relation_size(oid))::bigint FROM pg_class WHERE";
        let rows = self.query(&format!("{sum} {OWN_TABLES}"), &[])?;
        rows.first().map_or(Ok(0), |row| row.count(0))
    }
}

fn parameters(values: &[SqlValue]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

impl ToSql for SqlValue {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            SqlValue::Null | SqlValue::Other => Ok(IsNull::Yes),
            SqlValue::Integer(number) => number.to_sql(kind, out),
            SqlValue::Text(text) => text.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        [Type::INT8, Type::TEXT].contains(kind)
    }

    to_sql_checked!();
}

fn row(row: &postgres::Row) -> StoredRow {
    let value = |(column, about): (usize, &postgres::Column)| match *about.type_() {
        Type::INT8 => row.get::<_, Option<i64>>(column).map_or(SqlValue::Null, SqlValue::Integer),
        Type::INT4 => row
            .get::<_, Option<i32>>(column)
            .map_or(SqlValue::Null, |number| SqlValue::Integer(number.into())),
        Type::TEXT => row.get::<_, Option<String>>(column).map_or(SqlValue::Null, SqlValue::Text),
        _ => SqlValue::Other,
    };
    StoredRow(row.columns().iter().enumerate().map(value).collect())
}

fn refused(refusal: Refusal, message: String) -> DatabaseFailure {
    DatabaseFailure { refusal, message }
}

/// Classifies an error. Only the state of the client reveals that the connection was lost.
fn failure(error: &postgres::Error, closed: bool) -> DatabaseFailure {
    // The library has no code for a server that asks for a password where none was given.
    let lacks_password = || error.source().is_some_and(|cause| cause.to_string() == "password missing");
    let refusal = match error.as_db_error().map(|error| error.code()) {
        None if lacks_password() => Refusal::Denied,
        None if closed => Refusal::Unreachable,
        None => Refusal::Other,
        Some(code) => match *code {
            SqlState::LOCK_NOT_AVAILABLE => Refusal::Busy,
            SqlState::DISK_FULL | SqlState::IO_ERROR | SqlState::OUT_OF_MEMORY => Refusal::Full,
            SqlState::INSUFFICIENT_PRIVILEGE
            | SqlState::READ_ONLY_SQL_TRANSACTION
            | SqlState::UNDEFINED_DATABASE
            | SqlState::INVALID_SCHEMA_NAME => Refusal::Denied,
            SqlState::DATA_CORRUPTED | SqlState::INDEX_CORRUPTED => Refusal::Corrupt,
            SqlState::TOO_MANY_CONNECTIONS => Refusal::Unreachable,
            // These classes of errors mean that the server shuts down, has crashed, or is starting, or that the
            // connection failed.
            _ if code.code().starts_with("57P") || code.code().starts_with("08") => Refusal::Unreachable,
            _ if code.code().starts_with("28") => Refusal::Denied,
            _ => Refusal::Other,
        },
    };
    refused(refusal, words(error))
}

/// Returns the message of an error: that of the server, or that of the library with its causes.
fn words(error: &postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_url_that_the_library_does_not_know_are_removed() {
        let parts =
            UrlParts::of("postgres://u@h/d?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem&options=-cx%3D1");
        assert_eq!(parts.url, "postgres://u@h/d?sslmode=require&options=-cx%3D1");
        assert_eq!(parts.certificates, Some(PathBuf::from("/etc/ca.pem")));
        assert_eq!(UrlParts::of("postgres://h/d").url, "postgres://h/d");
    }

    #[test]
    fn network_connections_are_encrypted_unless_the_url_says_otherwise() {
        let of = |text: &str| {
            let address = crate::address::StoreAddress::parse(text, true).expect("an address");
            let crate::address::StoreAddress::Server(url) = address else { panic!("a server") };
            let encrypted = |server: ServerAccess| server.config.get_ssl_mode() == SslMode::Require;
            ServerAccess::of(&url).map(encrypted).map_err(|failure| failure.message)
        };
        assert_eq!(of("postgres://db.example/x"), Ok(true));
        assert_eq!(of("postgres://db.example/x?sslmode=prefer"), Ok(true));
        assert_eq!(of("postgres://db.example/x?sslmode=disable"), Ok(false));
        assert_eq!(of("postgres://127.0.0.1/x"), Ok(false));
        assert_eq!(of("postgres://localhost/x?sslmode=require"), Ok(true));
        assert_eq!(of("postgres:///x?host=/run/postgresql"), Ok(false));
    }
}
