//! `figures`: the JSON of many runs, one a line, as tables for a README.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use super::goal::short;
use crate::Error;

const DATABASES: [&str; 3] = ["sqlite", "postgres", "mariadb"];

/// What is told beside the targets, where a run has it.
const TOLD: [&str; 32] = [
    "utilisation",
    "bare_utilisation",
    "bare_kept_utilisation",
    "gap.p50_ms",
    "gap.p99_ms",
    "bare_gap.p50_ms",
    "bare_gap.p99_ms",
    "commit.p50_ms",
    "gap_in_commits",
    "calls_per_s",
    "cpu_ms_per_call",
    "peak_mib",
    "enqueued_per_s",
    "drained_per_s",
    "bare_per_s",
    "without_log_per_s",
    "without_cap_per_s",
    "cpu_s_per_1000",
    "transactions_per_task",
    "from_commit.p50_ms",
    "from_commit.p99_ms",
    "fired_per_s",
    "lateness.p50_ms",
    "lateness.p99_ms",
    "full.p50_ms",
    "full.p99_ms",
    "connections",
    "again_s",
    "empty.p50_ms",
    "long.p50_ms",
    "succeeded",
    "calls",
];

/// Two tables: what was aimed at, and what else was measured. Of several runs of one kind the median is told.
///
/// # Errors
/// Where the file cannot be read, or a line is no report.
pub fn tables(file: &Path) -> Result<String, Error> {
    let text = std::fs::read_to_string(file)?;
    let runs: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let mut names: Vec<&str> = Vec::new();
    for run in &runs {
        let name = run["run"].as_str().ok_or("a line is no report of loadtest")?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut out = String::from("| run | target | SQLite | PostgreSQL | MariaDB |\n|---|---|---|---|---|\n");
    for name in &names {
        let of_name: Vec<_> = runs.iter().filter(|run| run["run"] == **name).collect();
        let mut goals: Vec<&str> = Vec::new();
        for goal in of_name.iter().filter_map(|run| run["targets"].as_array()).flatten() {
            goals.extend(goal["name"].as_str().filter(|goal| !goals.contains(goal)));
        }
        for goal in goals {
            row(&mut out, name, goal, |database| {
                let hits = of_name.iter().filter(|run| run["database"] == database);
                let hits = hits.filter_map(|run| run["targets"].as_array()).flatten();
                let mut hits: Vec<_> = hits.filter(|hit| hit["name"] == goal).collect();
                hits.sort_by(|a, b| number(&a["value"]).total_cmp(&number(&b["value"])));
                let hit = hits.get(hits.len() / 2)?;
                let said = if hit["ok"] == true { "" } else { " **missed**" };
                let sense = hit["sense"].as_str().unwrap_or_default();
                let (value, bound) = (short(number(&hit["value"])), short(number(&hit["bound"])));
                Some(format!("{value} {sense} {bound}{said}"))
            });
        }
    }
    out += "\n| run | figure | SQLite | PostgreSQL | MariaDB |\n|---|---|---|---|---|\n";
    for name in &names {
        for figure in TOLD {
            let pointer = format!("/{}", figure.replace('.', "/"));
            let cell = |database: &str| {
                let hits = runs.iter().filter(|run| run["run"] == **name && run["database"] == database);
                let mut hits: Vec<f64> = hits.filter_map(|run| run.pointer(&pointer)?.as_f64()).collect();
                hits.sort_by(f64::total_cmp);
                Some(short(*hits.get(hits.len() / 2)?))
            };
            if DATABASES.iter().any(|database| cell(database).is_some()) {
                row(&mut out, name, figure, cell);
            }
        }
    }
    Ok(out)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// (Writing to a String cannot fail.)
fn row(out: &mut String, run: &str, what: &str, cell: impl Fn(&str) -> Option<String>) {
    let _ = write!(out, "| {run} | {what} |");
    for database in DATABASES {
        let _ = write!(out, " {} |", cell(database).unwrap_or_else(|| "–".to_owned()));
    }
    out.push('\n');
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_runs_stands_under_its_database() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = |value: f64, ok: bool| {
            format!(
                "{{\"run\": \"limit 50 ms\", \"database\": \"postgres\", \"gap\": {{\"p50_ms\": {value}}},
                   \"targets\": [{{\"name\": \"n\", \"value\": {value}, \"sense\": \"≤\", \"bound\": 1.5, \"ok\": {ok}}}]}}"
            )
            .replace('\n', "")
        };
        std::fs::write(file.path(), [line(1.0, true), line(3.0, false), line(2.0, false)].join("\n"))
            .unwrap();
        let tables = tables(file.path()).unwrap();
        assert!(tables.contains("| limit 50 ms | n | – | 2 ≤ 1.5 **missed** | – |"), "{tables}");
        assert!(tables.contains("| limit 50 ms | gap.p50_ms | – | 2 | – |"), "{tables}");
    }
}
