//! What stands before croner: the number of fields, ranges that go round (`22-2`, `FRI-MON`), and what Quartz writes
//! otherwise than croner reads it.

use super::CronDialect;

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const DAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// Which values a field has, and their names.
struct Field {
    first: usize,
    count: usize,
    names: &'static [&'static str],
}

const fn field(first: usize, count: usize, names: &'static [&'static str]) -> Field {
    Field { first, count, names }
}

const QUARTZ: [Field; 7] = [
    field(0, 60, &[]),
    field(0, 60, &[]),
    field(0, 24, &[]),
    field(1, 31, &[]),
    field(1, 12, &MONTHS),
    field(1, 7, &DAYS),
    field(1970, 1000, &[]),
];
const UNIX: [Field; 5] =
    [field(0, 60, &[]), field(0, 24, &[]), field(1, 31, &[]), field(1, 12, &MONTHS), field(0, 7, &DAYS)];

/// The fields as croner takes them, or what to write instead.
pub(super) fn fields(expression: &str, dialect: CronDialect) -> Result<Vec<String>, String> {
    let expression = expression.to_ascii_uppercase();
    if expression.starts_with('@') {
        return nickname(&expression, dialect);
    }
    let mut fields: Vec<String> = expression.split(' ').map(str::to_owned).collect();
    let (known, want, other): (&[Field], _, _) = match dialect {
        CronDialect::Unix => {
            (&UNIX, "five: minute, hour, day, month, weekday", "with seconds first it is Quartz's (--quartz)")
        }
        CronDialect::Quartz => (
            &QUARTZ,
            "six or seven: second, minute, hour, day, month, weekday, and a year if you like",
            "with five fields it is cron's (--cron)",
        ),
    };
    let right = match dialect {
        CronDialect::Unix => fields.len() == 5,
        CronDialect::Quartz => (6..=7).contains(&fields.len()),
    };
    if !right {
        let count = fields.iter().filter(|field| !field.is_empty()).count();
        return Err(format!("it has {count} fields and must have {want}; {other}"));
    }
    if dialect == CronDialect::Quartz {
        days(&mut fields)?;
    } else if fields[4] == "L" {
        return Err("L alone is no weekday here; write 6 for Saturday, or 5L for the last Friday".to_owned());
    }
    fields.iter().zip(known).map(|(text, field)| unrolled(text, field)).collect()
}

fn nickname(word: &str, dialect: CronDialect) -> Result<Vec<String>, String> {
    let meaning = match word {
        "@YEARLY" | "@ANNUALLY" => "0 0 1 1 *",
        "@MONTHLY" => "0 0 1 * *",
        "@WEEKLY" => "0 0 * * 0",
        "@DAILY" | "@MIDNIGHT" => "0 0 * * *",
        "@HOURLY" => "0 * * * *",
        _ => return Err("there are @yearly, @monthly, @weekly, @daily and @hourly".to_owned()),
    };
    match dialect {
        CronDialect::Unix => Ok(meaning.split(' ').map(str::to_owned).collect()),
        CronDialect::Quartz => Err("Quartz has no such words; use --cron".to_owned()),
    }
}

/// Quartz's two days.
fn days(fields: &mut [String]) -> Result<(), String> {
    let (month_day, week_day) = (fields[3].clone(), fields[5].clone());
    if month_day.contains("L-") {
        return Err(format!(
            "{month_day} (days before the last of the month) is not supported; L, LW and 15W are"
        ));
    }
    let any = |day: &str| matches!(day, "?" | "*");
    if !any(&month_day) && !any(&week_day) {
        return Err("it names a day of the month and a weekday, which Quartz refuses as well; put ? in one \
                    of them, or add two triggers"
            .to_owned());
    }
    if month_day == "?" && week_day == "?" {
        return Err("? stands in both days; write * in one of them".to_owned());
    }
    if week_day == "L" {
        "7".clone_into(&mut fields[5]); // Saturday, which croner would never match
    }
    Ok(())
}

/// A field whose ranges all go upwards.
fn unrolled(text: &str, field: &Field) -> Result<String, String> {
    let parts: Result<Vec<_>, _> = text.split(',').map(|part| range(part, field)).collect();
    Ok(parts?.join(","))
}

fn range(part: &str, field: &Field) -> Result<String, String> {
    let (span, step) = part.split_once('/').map_or((part, None), |(span, step)| (span, Some(step)));
    let Some((from, to)) = span.split_once('-') else { return Ok(part.to_owned()) };
    let (Some(first), Some(last)) = (field.value(from), field.value(to)) else { return Ok(part.to_owned()) };
    if first <= last {
        return Ok(part.to_owned());
    }
    let step = match step.map(str::parse) {
        None => 1,
        Some(Ok(step)) if step > 0 => step,
        Some(_) => return Err(format!("{part:?} has a step that is no number from 1")),
    };
    // Round the end of the field, where Sunday as 7 is Sunday as 0.
    let last = last + field.count;
    let values = (first..=last).step_by(step).map(|value| (value - field.first) % field.count + field.first);
    Ok(values.map(|value| value.to_string()).collect::<Vec<_>>().join(","))
}

impl Field {
    fn value(&self, text: &str) -> Option<usize> {
        let named = self.names.iter().position(|name| *name == text).map(|place| place + self.first);
        named.or_else(|| text.parse().ok())
    }
}
