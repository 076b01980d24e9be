//! Why a connection could not be opened, and what to do about it: one line, by what the server or the system said.

use std::io;

use super::error::words;

/// PostgreSQL's SQLSTATE, words of its message (empty: whatever they are), what to do. The first that fits.
const POSTGRES: [(&str, &str, &str); 15] = [
    ("28P01", "", PASSWORD),
    (
        "28000",
        "no encryption",
        "end the URL with ?sslmode=require where the server takes only TLS; else let this host and user in, in its pg_hba.conf",
    ),
    ("28000", "role", "create the role, or correct the user in the URL"),
    ("28000", "", "let this host and user in, in the server's pg_hba.conf"),
    ("3D000", "", "create the database, or correct its name at the end of the URL"),
    ("42501", "", RIGHTS),
    ("53300", "", CONNECTIONS),
    ("42P05", "", POOLER),
    ("26000", "", POOLER),
    ("57P03", "", "the server starts or stops; try again in a moment"),
    ("57P02", "", "the server has crashed and recovers; try again in a moment"),
    ("55000", "not accepting", "ALTER DATABASE … ALLOW_CONNECTIONS true lets clients in"),
    ("08P01", "startup parameter", "set ignore_startup_parameters = extra_float_digits in pgbouncer.ini"),
    ("08P01", "no such database", "name the database in pgbouncer.ini, or correct the URL"),
    ("08P01", "password authentication", PASSWORD),
];

/// The same by error number of MySQL and MariaDB.
const MYSQL: [(u16, &str); 11] = [
    (1045, ACCESS),
    (1044, DATABASE),
    (1049, "create the database, or correct its name at the end of the URL"),
    (1040, CONNECTIONS),
    (1203, CONNECTIONS),
    (1226, CONNECTIONS),
    (1130, "let this host in: CREATE USER 'name'@'host'"),
    (1129, "the server has shut this host out after many errors: FLUSH HOSTS on the server"),
    (3159, "the server takes only TLS: end the URL with ?ssl-mode=REQUIRED"),
    (1698, "give the user a password: this account is for the server's own host and system user"),
    (1053, "the server stops; try again in a moment"),
];

const PASSWORD: &str =
    "check user and password in the URL (special characters are percent-encoded), and that the user exists";
/// MySQL and MariaDB say no more to somebody who comes without TLS.
const ACCESS: &str = "check user and password in the URL (special characters are percent-encoded), that the user may come \
                      from this host, and, where the server takes only TLS, end the URL with ?ssl-mode=REQUIRED";
/// Nor to somebody who asks for a database that is not there.
const DATABASE: &str = "correct the name at the end of the URL, create the database, or grant it, as in sql/README.md, \"Least privilege\"";
pub(super) const POOLER: &str = "a pooler in between mixes our sessions up: connect to the server itself, or set \
                                 pool_mode = session for permitq in pgbouncer.ini";
const RIGHTS: &str = "grant it, as in sql/README.md, \"Least privilege\"";
const CONNECTIONS: &str =
    "raise the server's limit, or run fewer clients; a consumer takes 3 connections, on PostgreSQL 4";

/// The server's or the system's words on one line, and what to do where that is known.
pub(super) fn explain(error: &sqlx::Error) -> String {
    let said = match error {
        sqlx::Error::Io(error) => error.to_string(),
        _ => words(error),
    };
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    match remedy(error, &said) {
        Some(remedy) => format!("{said}; {remedy}"),
        None => said,
    }
}

fn remedy(error: &sqlx::Error, said: &str) -> Option<&'static str> {
    match error {
        // Under TLS, what is wrong with a certificate comes as an I/O error.
        sqlx::Error::Io(_) if said.contains("certificate") => Some(tls(said)),
        sqlx::Error::Io(error) => Some(unreachable(error)),
        sqlx::Error::Tls(_) => Some(tls(said)),
        sqlx::Error::Protocol(_) => Some("does a server of the URL's scheme listen at this port?"),
        sqlx::Error::Database(database) => {
            #[cfg(feature = "mysql")]
            if let Some(mysql) = database.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
                return by_number(mysql.number());
            }
            #[cfg(feature = "sqlite")]
            if database.try_downcast_ref::<sqlx::sqlite::SqliteError>().is_some() {
                return sqlite(said);
            }
            by_state(&database.code().unwrap_or_default(), said)
        }
        _ => None,
    }
}

fn by_state(state: &str, said: &str) -> Option<&'static str> {
    let found = POSTGRES.iter().find(|(code, words, _)| *code == state && said.contains(words));
    found.map(|(_, _, remedy)| *remedy)
}

fn by_number(number: u16) -> Option<&'static str> {
    MYSQL.iter().find(|(code, _)| *code == number).map(|(_, remedy)| *remedy)
}

fn sqlite(said: &str) -> Option<&'static str> {
    if said.contains("file is not a database") {
        Some("name another file, or move this one away")
    } else if said.contains("unable to open") || said.contains("readonly") {
        Some("permitq must be able to write the file and its folder")
    } else {
        None
    }
}

fn unreachable(error: &io::Error) -> &'static str {
    use io::ErrorKind as K;
    match error.kind() {
        K::ConnectionRefused => "is the server running, and are host and port in the URL right?",
        K::TimedOut | K::HostUnreachable | K::NetworkUnreachable => {
            "does a network or firewall between here and there let the port through?"
        }
        K::UnexpectedEof | K::ConnectionReset | K::ConnectionAborted | K::BrokenPipe => {
            "the other side hung up: does a server of the URL's scheme listen there, and is it well?"
        }
        // The resolver's errors have no kind of their own.
        _ => "is the host in the URL right, and does its name resolve here?",
    }
}

fn tls(said: &str) -> &'static str {
    if said.contains("does not support") || said.contains("not support") {
        "switch TLS on at the server, or off in the URL: ?sslmode=disable (PostgreSQL), ?ssl-mode=DISABLED (MySQL, MariaDB)"
    } else if ["UnknownIssuer", "BadSignature", "CaUsedAsEndEntity"].iter().any(|why| said.contains(why)) {
        "name the CA that signed the server's certificate: ?sslrootcert=FILE (PostgreSQL), ?ssl-ca=FILE (MySQL, MariaDB)"
    } else if said.contains("valid for") || said.contains("NotValidForName") {
        "name the host in the URL as the server's certificate does"
    } else if said.contains("Expired") || said.contains("expired") {
        "renew the server's certificate"
    } else {
        "check the server's certificate, and the files that the URL names"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_follows_from_the_code() {
        assert_eq!(by_state("28P01", "password authentication failed"), Some(PASSWORD));
        let hba = "no pg_hba.conf entry for host \"::1\", user \"a\", database \"b\", no encryption";
        assert!(by_state("28000", hba).unwrap().contains("sslmode=require"));
        assert!(by_state("28000", "role \"a\" does not exist").unwrap().contains("create the role"));
        assert!(by_state("53300", "sorry, too many clients already").unwrap().contains("raise"));
        assert_eq!(by_state("XX000", "internal error"), None);
        assert_eq!(by_number(1040), Some(CONNECTIONS));
        assert_eq!(by_number(9999), None);
    }

    #[test]
    fn every_error_is_one_line() {
        let lookup = io::Error::other("failed to lookup address information:\n Name or service not known");
        let text = explain(&sqlx::Error::Io(lookup));
        assert!(
            text.starts_with("failed to lookup address information: Name") && !text.contains('\n'),
            "{text}"
        );
        assert!(text.ends_with("does its name resolve here?"), "{text}");
        let tls = sqlx::Error::Tls("invalid peer certificate: UnknownIssuer".into());
        assert!(explain(&tls).contains("sslrootcert"), "{}", explain(&tls));
        let refused = sqlx::Error::Io(io::ErrorKind::ConnectionRefused.into());
        assert!(explain(&refused).contains("is the server running"));
    }
}
