//! The rules as tables.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn cron(expression: &str, dialect: CronDialect, zone: &str) -> When {
    let plan = Plan::Cron(Cron::parse(expression, dialect).unwrap());
    When { plan, zone: When::zone(zone).unwrap(), start: Timestamp::UNIX_EPOCH, end: None }
}

fn unix(expression: &str, zone: &str) -> When {
    cron(expression, CronDialect::Unix, zone)
}

fn quartz(expression: &str) -> When {
    cron(expression, CronDialect::Quartz, "UTC")
}

fn every(plan: fn(Duration) -> Plan, seconds: u64, start: &str) -> When {
    When { plan: plan(Duration::from_secs(seconds)), zone: TimeZone::UTC, start: at(start), end: None }
}

/// The next instants after this one, as `DD HH:MM` in UTC.
fn next(when: &When, from: &str, n: usize) -> Vec<String> {
    instants(when, at(from), n).iter().map(|at| at.strftime("%d %H:%M").to_string()).collect()
}

fn instants(when: &When, from: Timestamp, n: usize) -> Vec<Timestamp> {
    std::iter::successors(when.after(from), |last| when.after(*last)).take(n).collect()
}

fn days(when: &When, from: &str, n: usize) -> Vec<String> {
    instants(when, at(from), n).iter().map(|at| at.strftime("%Y-%m-%d").to_string()).collect()
}

const NEW_YORK: &str = "America/New_York";
const LORD_HOWE: &str = "Australia/Lord_Howe";

/// What the module's documentation says of daylight saving time.
#[test]
fn clocks_that_change_follow_the_rule() {
    let table: &[(&str, &str, &str, &[&str])] = &[
        // New York, 2027-03-14: 02:00 to 03:00 at 07:00 UTC.
        ("30 2 * * *", NEW_YORK, "2027-03-13T12:00Z", &["14 07:00", "15 06:30"]),
        ("0 2 * * *", NEW_YORK, "2027-03-13T12:00Z", &["14 07:00", "15 06:00"]),
        ("0 3 * * *", NEW_YORK, "2027-03-13T12:00Z", &["14 07:00", "15 07:00"]),
        ("30 2,14 * * *", NEW_YORK, "2027-03-13T22:00Z", &["14 07:00", "14 18:30", "15 06:30"]),
        ("0 2,3 * * *", NEW_YORK, "2027-03-13T22:00Z", &["14 07:00", "15 06:00", "15 07:00"]),
        ("*/15 2 * * *", NEW_YORK, "2027-03-13T12:00Z", &["15 06:00", "15 06:15"]),
        ("0 * * * *", NEW_YORK, "2027-03-14T05:59Z", &["14 06:00", "14 07:00", "14 08:00"]),
        // New York, 2027-11-07: 02:00 to 01:00 at 06:00 UTC.
        ("30 1 * * *", NEW_YORK, "2027-11-07T00:00Z", &["07 05:30", "08 06:30"]),
        ("0 1,13 * * *", NEW_YORK, "2027-11-07T00:00Z", &["07 05:00", "07 18:00", "08 06:00"]),
        (
            "*/30 1 * * *",
            NEW_YORK,
            "2027-11-07T00:00Z",
            &["07 05:00", "07 05:30", "07 06:00", "07 06:30", "08 06:00"],
        ),
        ("0 * * * *", NEW_YORK, "2027-11-07T04:00Z", &["07 05:00", "07 06:00", "07 07:00"]),
        // Berlin, 2027-03-28 and 2027-10-31, both at 01:00 UTC.
        ("30 2 * * *", "Europe/Berlin", "2027-03-27T12:00Z", &["28 01:00", "29 00:30"]),
        ("*/20 2 * * *", "Europe/Berlin", "2027-03-27T12:00Z", &["29 00:00", "29 00:20"]),
        ("30 2 * * *", "Europe/Berlin", "2027-10-30T12:00Z", &["31 00:30", "01 01:30"]),
        ("30 1-3 * * *", "Europe/Berlin", "2027-10-31T00:00Z", &["31 00:30", "31 01:30", "31 02:30"]),
        // Lord Howe, half an hour: 2026-10-04 02:00 to 02:30, 2027-04-04 02:00 to 01:30.
        ("15 2 * * *", LORD_HOWE, "2026-10-03T12:00Z", &["03 15:30", "04 15:15"]),
        ("*/15 2 * * *", LORD_HOWE, "2026-10-03T12:00Z", &["03 15:30", "03 15:45", "04 15:00"]),
        ("45 1 * * *", LORD_HOWE, "2027-04-03T12:00Z", &["03 14:45", "04 15:15"]),
        (
            "*/15 1 * * *",
            LORD_HOWE,
            "2027-04-03T12:00Z",
            &["03 14:00", "03 14:15", "03 14:30", "03 14:45", "03 15:00", "03 15:15"],
        ),
        // Cairo jumps at midnight, 2027-04-30.
        ("0 0 * * *", "Africa/Cairo", "2027-04-29T12:00Z", &["29 22:00", "30 21:00"]),
        ("30 0 * * *", "Africa/Cairo", "2027-04-29T12:00Z", &["29 22:00", "30 21:30"]),
    ];
    for (expression, zone, from, expected) in table {
        assert_eq!(next(&unix(expression, zone), from, expected.len()), *expected, "{expression} in {zone}");
    }
    // An interval knows no change of clock.
    let hours = every(Plan::Interval, 3600, "2027-03-14T00:30Z");
    assert_eq!(next(&hours, "2027-03-14T05:59Z", 3), ["14 06:30", "14 07:30", "14 08:30"]);
}

#[test]
fn the_29th_of_february_and_the_31st() {
    let leap = unix("0 9 29 2 *", "UTC");
    for (from, expected) in [
        ("2024-02-29T09:00Z", "2028-02-29T09:00Z"),
        ("2096-02-29T09:00Z", "2104-02-29T09:00Z"),
        ("2097-01-01T00:00Z", "2104-02-29T09:00Z"),
    ] {
        assert_eq!(leap.after(at(from)), Some(at(expected)), "{from}");
    }
    let table: &[(When, &[&str])] = &[
        (unix("0 0 31 * *", "UTC"), &["2027-03-31", "2027-05-31", "2027-07-31", "2027-08-31", "2027-10-31"]),
        (quartz("0 0 0 L * ?"), &["2027-02-28", "2027-03-31", "2027-04-30", "2027-05-31"]),
        (
            quartz("0 0 0 LW * ?"),
            &["2027-02-26", "2027-03-31", "2027-04-30", "2027-05-31", "2027-06-30", "2027-07-30"],
        ),
        (quartz("0 0 0 15W * ?"), &["2027-02-15", "2027-03-15", "2027-04-15", "2027-05-14"]),
        (quartz("0 0 0 1W * ?"), &["2027-02-01", "2027-03-01", "2027-04-01", "2027-05-03"]),
        (quartz("0 0 0 ? * 6L"), &["2027-02-26", "2027-03-26"]),
        (quartz("0 0 0 ? * FRIL"), &["2027-02-26", "2027-03-26"]),
        (quartz("0 0 0 ? * 6#3"), &["2027-02-19", "2027-03-19"]),
        (quartz("0 0 0 ? * L"), &["2027-02-06", "2027-02-13"]),
        (
            quartz("0 0 0 ? * 2-6"),
            &["2027-02-01", "2027-02-02", "2027-02-03", "2027-02-04", "2027-02-05", "2027-02-08"],
        ),
        (quartz("0 0 0 24 12 ? 2028"), &["2028-12-24"]),
    ];
    for (when, expected) in table {
        assert_eq!(days(when, "2027-01-31T00:00Z", expected.len()), *expected, "{when}");
    }
    assert_eq!(quartz("0 0 0 24 12 ? 2028").after(at("2028-12-24T00:00Z")), None);
}

#[test]
fn equal_meanings_are_equal() {
    let same = |dialect, expressions: &[&str]| {
        let from = at("2027-01-01T00:00:00Z");
        let all = |one: &&str| instants(&cron(one, dialect, "Europe/Berlin"), from, 20);
        let first = all(&expressions[0]);
        assert_eq!(first.len(), 20);
        for other in &expressions[1..] {
            assert_eq!(all(other), first, "{other} and {}", expressions[0]);
        }
    };
    same(CronDialect::Unix, &["0 8 * * 0", "0 8 * * 7", "0 8 * * SUN", "0 8 * * sun", "0  8 * *  Sun"]);
    same(CronDialect::Unix, &["0 8 * * 0#2", "0 8 * * 7#2", "0 8 * * SUN#2", "0 8 * * Sun#2"]);
    same(
        CronDialect::Unix,
        &["0 8 * * 5-7", "0 8 * * FRI-SUN", "0 8 * * 5,6,0", "0 8 * * fri,sat,7", "0 8 * * 5-0"],
    );
    same(CronDialect::Unix, &["0 8 * * 6-1", "0 8 * * SAT-MON", "0 8 * * 6,0,1", "0 8 * * 6,7,mon"]);
    same(CronDialect::Unix, &["0 8 * * 5L", "0 8 * * FRIL"]);
    same(CronDialect::Unix, &["0 22-2 * * *", "0 22,23,0,1,2 * * *", "0 0-2,22-23 * * *"]);
    same(CronDialect::Unix, &["0 22-4/2 * * *", "0 22,0,2,4 * * *"]);
    same(CronDialect::Unix, &["0 8 1 NOV-FEB *", "0 8 1 11,12,1,2 *", "0 8 1 jan,feb,11-12 *"]);
    same(CronDialect::Unix, &["@daily", "0 0 * * *", "@midnight", "00 00 * * *"]);
    same(CronDialect::Unix, &["@weekly", "0 0 * * SUN"]);
    same(CronDialect::Quartz, &["0 0 8 ? * SUN", "0 0 8 ? * 1", "0 0 8 * * 1", "0 0 8 ? * sun *"]);
    same(CronDialect::Quartz, &["0 0 8 ? * FRI-MON", "0 0 8 ? * 6-2", "0 0 8 ? * 6,7,1,2"]);
    same(CronDialect::Quartz, &["0 0/15 * * * ?", "0 */15 * ? * *", "0 0,15,30,45 * * * ?"]);
    // Both days restricted: either may match, as cron has it.
    assert_eq!(
        days(&unix("0 0 13 * FRI", "UTC"), "2027-01-07T00:00Z", 3),
        ["2027-01-08", "2027-01-13", "2027-01-15"]
    );
}

#[test]
fn what_cannot_be_read_or_never_comes_says_what_to_write() {
    for (expression, dialect, words) in [
        ("0 0 12 * * ?", CronDialect::Unix, "6 fields and must have five"),
        ("0 12 * * *", CronDialect::Quartz, "5 fields and must have six or seven"),
        ("", CronDialect::Unix, "0 fields and must have five"),
        ("61 * * * *", CronDialect::Unix, "out of bounds"),
        ("x * * * *", CronDialect::Unix, "illegal character"),
        ("@reboot", CronDialect::Unix, "there are @yearly"),
        ("@daily", CronDialect::Quartz, "use --cron"),
        ("0 0 * * L", CronDialect::Unix, "5L for the last Friday"),
        ("0 0 0 L-3 * ?", CronDialect::Quartz, "L-3 (days before the last of the month) is not supported"),
        ("0 0 0 13 * FRI", CronDialect::Quartz, "add two triggers"),
        ("0 0 0 ? * ?", CronDialect::Quartz, "write * in one of them"),
        ("0 22-2/0 * * *", CronDialect::Unix, "a step that is no number from 1"),
        ("*/0 * * * *", CronDialect::Unix, ""),
    ] {
        let error = Cron::parse(expression, dialect).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains(expression), "{expression}: {error}");
    }
    let now = at("2027-01-01T00:00Z");
    let end = |when: When, end: &str| When { end: Some(at(end)), ..when };
    for (when, words) in [
        (unix("0 0 31 2 *", "UTC"), "no such day will come"),
        (quartz("0 0 0 1 1 ? 2020"), "look at day, month and year"),
        (end(unix("0 0 1 * *", "UTC"), "2027-01-15T00:00Z"), ""),
        (end(unix("0 0 2 2 *", "UTC"), "2027-02-01T00:00Z"), "after its end"),
        (every(|_| Plan::Once, 1, "2026-12-31T23:59:59Z"), "yet to come"),
        (every(Plan::Interval, 0, "2027-01-01T00:00Z"), "from 1 ms to 366 days"),
        (every(Plan::FixedDelay, 400 * 86_400, "2027-01-01T00:00Z"), "from 1 ms to 366 days"),
        (end(every(Plan::Interval, 5, "2027-02-01T00:00Z"), "2027-01-15T00:00Z"), "before it starts"),
    ] {
        let checked = when.check(now).map_err(|error| error.to_string());
        match words {
            "" => assert_eq!(checked, Ok(()), "{when}"),
            words => assert!(checked.clone().unwrap_err().contains(words), "{when}: {checked:?}"),
        }
    }
    let error = When::zone("Europe/Berlni").unwrap_err().to_string();
    assert!(error.contains("\"Europe/Berlni\"") && error.contains("Europe/Berlin"), "{error}");
}

#[test]
fn intervals_do_not_drift_and_bounds_hold() {
    let five = every(Plan::Interval, 300, "2027-01-01T00:02Z");
    assert_eq!(next(&five, "2026-12-01T00:00Z", 2), ["01 00:02", "01 00:07"]);
    assert_eq!(next(&five, "2027-01-01T00:06:59.9Z", 2), ["01 00:07", "01 00:12"]);
    assert_eq!(next(&five, "2027-01-01T00:07Z", 1), ["01 00:12"]);
    let short = When { end: Some(at("2027-01-01T00:12Z")), ..five };
    assert_eq!(next(&short, "2026-12-01T00:00Z", 9), ["01 00:02", "01 00:07", "01 00:12"]);

    let started = When { start: at("2027-06-15T12:00Z"), ..unix("0 12 * * *", "UTC") };
    assert_eq!(started.after(at("2027-01-01T00:00Z")), Some(at("2027-06-15T12:00Z")));
    let once = every(|_| Plan::Once, 1, "2027-01-01T00:00Z");
    assert_eq!(once.first(at("2027-01-01T00:00Z")), Some(at("2027-01-01T00:00Z")));
    assert_eq!(once.after(at("2027-01-01T00:00Z")), None);
    let delay = every(Plan::FixedDelay, 60, "2027-01-01T00:00Z");
    assert_eq!(delay.first(at("2026-01-01T00:00Z")), Some(at("2027-01-01T00:00Z")));
    assert_eq!(delay.after(at("2027-01-01T00:00Z")), None);
    assert_eq!(delay.after_end(at("2027-01-01T00:09:30Z")), Some(at("2027-01-01T00:10:30Z")));
}

/// A second is never due twice, however the search begins within it (and no instant is passed by).
#[test]
fn the_next_follows_from_the_last_and_not_from_the_look() {
    let when = quartz("* * * * * ?");
    let mut instant = at("2027-01-01T00:00:00Z");
    for second in 1..=3600 {
        instant = when.after(instant).unwrap();
        assert_eq!(instant, at("2027-01-01T00:00:00Z") + Duration::from_secs(second));
        assert_eq!(when.after(instant + Duration::from_micros(1)), when.after(instant));
        assert_eq!(when.after(instant - Duration::from_micros(1)), Some(instant));
    }
}

/// Rows `PLANNED NOW POLICY: missed FIRST..LAST=COUNT, fire [..], next NEXT`, instants as `DD HH:MM`.
fn decides(when: &When, most: u32, rows: &[&str]) {
    for row in rows {
        let (given, expected) = row.split_once(": ").unwrap();
        let [planned, now, policy] = given.split(' ').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let misfire = Misfire { policy: policy.parse().unwrap(), most, ..Misfire::default() };
        let decision = decide(when, at(planned), at(now), &misfire);
        let text = |at: Timestamp| at.strftime("%d %H:%M").to_string();
        let missed = decision.missed.map_or("none".to_owned(), |missed| {
            format!("{}..{}={}", text(missed.first), text(missed.last), missed.count)
        });
        let fire: Vec<_> = decision.fire.into_iter().map(text).collect();
        let next = decision.next.map_or("none".to_owned(), text);
        let decided = format!("missed {missed}, fire [{}], next {next}", fire.join(", "));
        assert_eq!(decided, expected, "{when}: {given}");
    }
}

#[test]
fn what_is_late_follows_the_policy() {
    let minute = unix("* * * * *", "UTC");
    decides(
        &minute,
        3,
        &[
            // In time, by every policy; and the clock was set back after the look.
            "2027-01-04T10:00Z 2027-01-04T10:00:59Z skip: missed none, fire [04 10:00], next 04 10:01",
            "2027-01-04T10:00Z 2027-01-04T10:01Z fire_once: missed none, fire [04 10:00], next 04 10:01",
            "2027-01-04T10:00Z 2027-01-04T09:00Z skip: missed none, fire [04 10:00], next 04 10:01",
            // Ten minutes.
            "2027-01-04T10:00Z 2027-01-04T10:10:30Z skip: missed 04 10:00..04 10:09=10, fire [], next 04 10:10",
            "2027-01-04T10:00Z 2027-01-04T10:10:30Z fire_once: missed 04 10:00..04 10:09=10, fire [04 10:10], next 04 10:11",
            "2027-01-04T10:00Z 2027-01-04T10:10:30Z fire_all: missed 04 10:00..04 10:07=8, fire [04 10:08, 04 10:09, 04 10:10], next 04 10:11",
            // Two weeks.
            "2027-01-04T10:00Z 2027-01-18T10:00:30Z skip: missed 04 10:00..18 09:59=10000, fire [], next 18 10:00",
            "2027-01-04T10:00Z 2027-01-18T10:00:30Z fire_once: missed 04 10:00..18 09:59=10000, fire [18 10:00], next 18 10:01",
            "2027-01-04T10:00Z 2027-01-18T10:00:30Z fire_all: missed 04 10:00..18 09:57=10000, fire [18 09:58, 18 09:59, 18 10:00], next 18 10:01",
        ],
    );
}

#[test]
fn what_is_late_follows_the_policy_by_every_plan() {
    let midnight = "2027-01-01T00:00Z";
    decides(
        &unix("30 2 * * *", NEW_YORK),
        5,
        &[
            // Three weeks of days, and a clock that jumps on the 14th.
            "2027-03-01T07:30Z 2027-03-22T12:00Z fire_once: missed 01 07:30..21 06:30=21, fire [22 06:30], next 23 06:30",
            "2027-03-01T07:30Z 2027-03-22T12:00Z skip: missed 01 07:30..22 06:30=22, fire [], next 23 06:30",
            "2027-03-12T07:30Z 2027-03-16T12:00Z fire_all: missed none, fire [12 07:30, 13 07:30, 14 07:00, 15 06:30, 16 06:30], next 17 06:30",
        ],
    );
    decides(
        &every(Plan::Interval, 20, midnight),
        5,
        &[
            "2027-01-01T00:00Z 2027-01-08T00:00:10Z fire_once: missed 01 00:00..07 23:59=10000, fire [08 00:00], next 08 00:00",
            "2027-01-01T00:00Z 2027-01-01T00:10:10Z fire_once: missed 01 00:00..01 00:09=30, fire [01 00:10], next 01 00:10",
        ],
    );
    decides(
        &every(|_| Plan::Once, 1, midnight),
        5,
        &[
            "2027-01-01T00:00Z 2027-03-01T00:00Z fire_once: missed none, fire [01 00:00], next none",
            "2027-01-01T00:00Z 2027-03-01T00:00Z skip: missed 01 00:00..01 00:00=1, fire [], next none",
        ],
    );
    decides(
        &every(Plan::FixedDelay, 3600, midnight),
        5,
        &[
            "2027-01-01T00:00Z 2027-03-02T00:00Z fire_once: missed none, fire [01 00:00], next none",
            "2027-01-01T00:00Z 2027-03-02T00:00Z skip: missed 01 00:00..01 00:00=1, fire [], next 02 01:00",
        ],
    );
}

#[test]
fn keys_follow_their_template_and_zone() {
    let key = |template: &str, planned: &str, zone: &str| {
        KeyTemplate::parse(template, "r").unwrap().key("r{date}", at(planned), &When::zone(zone).unwrap())
    };
    assert_eq!(key("{job}/{instant}", "2026-12-01T08:00Z", "UTC"), "r{date}/2026-12-01T08:00:00Z");
    assert_eq!(key("DAILY_REPORT:{date}", "2026-12-01T23:30Z", "Europe/Berlin"), "DAILY_REPORT:2026-12-02");
    assert_eq!(key("{month} {date}T{time}!", "2026-12-01T08:00Z", NEW_YORK), "2026-12 2026-12-01T03:00:00!");
    for (template, words) in [
        ("DAILY_REPORT", "only the first would ever run"),
        ("{job}", "only the first would ever run"),
        ("{day}", "unknown placeholder; there are {job}, {instant}"),
        ("{date", "unknown placeholder"),
        ("{date}\n", "control"),
    ] {
        let error = KeyTemplate::parse(template, "r").unwrap_err().to_string();
        assert!(error.contains(words), "{template}: {error}");
    }
    assert!(KeyTemplate::parse(&format!("{}{{instant}}", "x".repeat(240)), "r").is_err());
    assert!(KeyTemplate::parse("{job}/{instant}", &"x".repeat(KIND_MAX)).is_ok());
}
