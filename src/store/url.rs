//! A database's URL: which parameters its driver takes, and what of it may be shown.

use reqwest::Url;

use super::Dialect;

/// What PostgreSQL's driver takes. Any other it would only warn about, with its value in the log.
const POSTGRES: [&str; 17] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];
/// What the driver of MySQL and MariaDB takes. Any other it would drop in silence, `sslmod=required` too.
const MYSQL: [&str; 13] = [
    "sslmode",
    "ssl-mode",
    "sslca",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "charset",
    "collation",
    "socket",
    "timezone",
    "time-zone",
];
/// What both take and nobody writes.
const CACHE: &str = "statement-cache-capacity";

/// What is wrong with a URL before anybody connects to it. Its words hold no secret.
pub(crate) fn check(url: &str) -> Result<(), String> {
    let (known, verifies): (&[&str], _) = match Dialect::of(url) {
        // `sqlite:file.db` and `sqlite::memory:` are the driver's own short forms; parameters are ours to choose.
        Some(Dialect::Sqlite) => return Ok(()),
        Some(Dialect::Postgres) => (&POSTGRES, ["verify-ca", "verify-full"]),
        Some(Dialect::Mysql) => (&MYSQL, ["VERIFY_CA", "VERIFY_IDENTITY"]),
        // The text itself is not shown: it may hold a password in some unknown form.
        None => {
            return Err(
                "not the URL of a database that is supported: sqlite, postgres, mysql, mariadb".into()
            );
        }
    };
    let parsed = Url::parse(url).map_err(|error| {
        format!("not a URL: {error}; special characters in a password are percent-encoded")
    })?;
    if !parsed.has_host() {
        return Err("the URL names no host".to_owned());
    }
    let (mut mode, mut ca) = (None, None);
    for (name, value) in parsed.query_pairs() {
        match &*name {
            "sslmode" | "ssl-mode" => mode = Some(value.clone().into_owned()),
            "sslrootcert" | "ssl-root-cert" | "ssl-ca" | "sslca" => ca = Some(name.clone().into_owned()),
            _ => {}
        }
        let option = known.contains(&"options") && name.starts_with("options[");
        if !known.contains(&&*name) && name != CACHE && !option {
            let known = known.join(", ");
            return Err(format!(
                "{} is no parameter of this database's URLs; they are {known}",
                plain(&name, &value)
            ));
        }
    }
    let checked = mode.as_ref().is_some_and(|mode| verifies.iter().any(|one| one.eq_ignore_ascii_case(mode)));
    match ca {
        Some(ca) if !checked => Err(format!(
            "{ca} names a CA, but without {}={} nobody checks the server's certificate against it",
            if verifies[0] == "verify-ca" { "sslmode" } else { "ssl-mode" },
            verifies[1]
        )),
        _ => Ok(()),
    }
}

/// A parameter's name, unless it may be the rest of a password that was not encoded.
fn plain<'a>(name: &'a str, value: &str) -> &'a str {
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !value.is_empty() && name.len() <= 30 && name.chars().all(word) {
        name
    } else {
        "something in the query"
    }
}

/// A URL without its password, in front of the host or among the parameters: of these only values are shown that are
/// known to be harmless. It looks at the text, not at the parsed URL, and takes everything up to the last `@` for
/// credentials: rather masked too much than too little where a password holds a character that should have been encoded.
pub(crate) fn mask(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let slashes = if scheme.is_empty() { "" } else { "://" };
    let (login, place) = rest.rsplit_once('@').map_or((String::new(), rest), |(login, place)| {
        let login = login.split_once(':').map_or(login.to_owned(), |(user, _)| format!("{user}:***"));
        (login + "@", place)
    });
    let (path, query) = place.split_once('?').map_or((place, String::new()), |(path, query)| {
        (path, format!("?{}", query.split('&').map(hide).collect::<Vec<_>>().join("&")))
    });
    format!("{scheme}{slashes}{login}{path}{query}")
}

fn hide(pair: &str) -> String {
    match pair.split_once('=') {
        Some((name, _)) if name != "password" && (POSTGRES.contains(&name) || MYSQL.contains(&name)) => {
            pair.to_owned()
        }
        Some((name, _)) => format!("{name}=***"),
        None => "***".to_owned(),
    }
}

/// A text in which somebody may have written a URL, with every URL masked.
#[cfg(feature = "cli")]
pub(crate) fn mask_all(text: &str) -> String {
    let word = |word: &str| if word.contains("://") { mask(word) } else { word.to_owned() };
    text.split_inclusive(char::is_whitespace).map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for (url, shown) in [
            ("postgres://u:hunter2@h:5432/db", "postgres://u:***@h:5432/db"),
            ("postgres://u:hunter2%2F@h/db", "postgres://u:***@h/db"),
            ("postgres://u:hunter@2@h/db", "postgres://u:***@h/db"),
            ("postgres://u:hunter2/x?y@h/db", "postgres://u:***@h/db"),
            ("postgres://u@h/db?sslmode=require", "postgres://u@h/db?sslmode=require"),
            (
                "postgres://h/db?user=u&password=hunter2&sslpassword=hunter2&hunter2",
                "postgres://h/db?user=u&password=***&sslpassword=***&***",
            ),
            ("mariadb://h/db?ssl-mode=REQUIRED&pw=hunter2", "mariadb://h/db?ssl-mode=REQUIRED&pw=***"),
            ("sqlite:permitq.db", "sqlite:permitq.db"),
            ("u:hunter2@h", "u:***@h"),
        ] {
            assert_eq!(mask(url), shown);
        }
    }

    #[test]
    fn parameters_that_the_driver_would_drop_or_log_are_refused() {
        for (url, words) in [
            ("postgres://u@h/db?sslpassword=hunter2", "sslpassword is no parameter of this database's URLs"),
            ("postgres://u@h/db?sslmod=require", "they are sslmode,"),
            ("mysql://h/db?user=u&password=hunter2", "user is no parameter"),
            ("mysql://h/db?sslmod=REQUIRED", "sslmod is no parameter"),
            ("postgres://u:1?hunter2@h/db", "something in the query is no parameter"),
            ("postgres://u:hunter2@h:x/db", "not a URL"),
            ("oracle://u:hunter2@h/db", "supported: sqlite, postgres"),
            ("postgres://u@h/db?sslrootcert=ca.pem", "without sslmode=verify-full nobody checks"),
            (
                "postgres://u@h/db?sslmode=require&sslrootcert=ca.pem",
                "without sslmode=verify-full nobody checks",
            ),
            ("mysql://u@h/db?ssl-ca=ca.pem", "without ssl-mode=VERIFY_IDENTITY nobody checks"),
            (
                "mysql://u@h/db?ssl-mode=REQUIRED&ssl-ca=ca.pem",
                "without ssl-mode=VERIFY_IDENTITY nobody checks",
            ),
        ] {
            let refusal = check(url).unwrap_err();
            assert!(refusal.contains(words) && !refusal.contains("hunter2"), "{url}: {refusal}");
        }
        for url in [
            "postgres://u:p@h/db?sslmode=verify-full&sslrootcert=ca.pem&options[search_path]=q",
            "postgresql://u@h/db?sslmode=VERIFY-CA&ssl-ca=ca.pem&statement-cache-capacity=1",
            "mariadb://u:p@h/db?ssl-mode=verify_identity&ssl-ca=ca.pem&charset=utf8mb4",
            "sqlite:file.db",
        ] {
            assert_eq!(check(url), Ok(()), "{url}");
        }
    }
}
