//! A task's attempts as bars, one a line, on one scale.
//!
//! ```text
//!  attempt 1  ····██████░░░░░░
//!  attempt 2            ······███████
//! ```

use jiff::Timestamp;

/// One attempt; what has not come yet is `None`, and a bar ends now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lane {
    pub(super) name: String,
    pub(super) waits_from: Timestamp,
    pub(super) claimed: Option<Timestamp>,
    pub(super) ended: Option<Timestamp>,
    /// Its permit was free.
    pub(super) freed: Option<Timestamp>,
}

const WIDTH: i64 = 60;

/// The bars, and what their length means.
pub(super) fn draw(lanes: &[Lane], now: Timestamp) -> Option<String> {
    let from = lanes.iter().map(|lane| lane.waits_from).min()?;
    let to = lanes.iter().map(|lane| end(lane, now)).max()?;
    let whole = i64::try_from(to.duration_since(from).as_micros()).ok()?.max(1);
    let column = |at: Timestamp| {
        let at = i64::try_from(at.duration_since(from).as_micros()).unwrap_or_default().clamp(0, whole);
        usize::try_from(i128::from(at) * i128::from(WIDTH) / i128::from(whole)).unwrap_or_default()
    };
    let width = lanes.iter().map(|lane| lane.name.chars().count()).max()?;
    let mut drawn = Vec::new();
    for lane in lanes {
        let mut bar: Vec<char> = Vec::new();
        bar.resize(column(lane.waits_from), ' ');
        bar.resize(column(lane.claimed.unwrap_or(now)).max(bar.len()), '·');
        if let Some(claimed) = lane.claimed {
            // What took a moment is still seen.
            bar.resize(column(lane.ended.unwrap_or(now)).max(bar.len() + 1), '█');
            let ended = lane.ended.unwrap_or(now).max(claimed);
            let freed = lane.freed.unwrap_or(now).max(ended);
            if lane.ended.is_some() && freed > ended {
                bar.resize(column(freed).max(bar.len() + 1), '░');
            }
        }
        let bar: String = bar.into_iter().collect();
        drawn.push(format!("{:width$}  {}", lane.name, bar.trim_end()));
    }
    let each = std::time::Duration::from_micros(whole.unsigned_abs() / WIDTH.unsigned_abs());
    let each = crate::cli::when::short(each);
    drawn.push(format!("· waits  █ runs  ░ its permit cools; a character is {each}"));
    Some(drawn.join("\n"))
}

fn end(lane: &Lane, now: Timestamp) -> Timestamp {
    match (lane.claimed, lane.ended) {
        (Some(_), Some(ended)) => lane.freed.unwrap_or(now).max(ended),
        _ => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn lane(name: &str, times: [Option<i64>; 4]) -> Lane {
        let [waits_from, claimed, ended, freed] = times.map(|time| time.map(at));
        Lane { name: name.to_owned(), waits_from: waits_from.unwrap(), claimed, ended, freed }
    }

    #[test]
    fn waiting_running_and_cooling_are_on_one_scale() {
        let lanes = [
            lane("1", [Some(0), Some(4), Some(10), Some(16)]),
            lane("10", [Some(10), Some(16), Some(30), Some(30)]),
        ];
        let drawn = draw(&lanes, at(99)).unwrap();
        let rows: Vec<_> = drawn.lines().collect();
        assert_eq!(rows[0], format!("1   {}{}{}", "·".repeat(8), "█".repeat(12), "░".repeat(12)));
        assert_eq!(rows[1], format!("10  {}{}{}", " ".repeat(20), "·".repeat(12), "█".repeat(28)));
        assert!(rows[2].ends_with("a character is 500 ms"), "{drawn}");
    }

    #[test]
    fn what_is_not_over_goes_on_until_now() {
        let drawn = draw(&[lane("a", [Some(0), Some(30), None, None])], at(60)).unwrap();
        assert!(drawn.starts_with(&format!("a  {}{}\n", "·".repeat(30), "█".repeat(30))), "{drawn}");
        let drawn = draw(&[lane("a", [Some(0), None, None, None])], at(60)).unwrap();
        assert!(drawn.starts_with(&format!("a  {}\n", "·".repeat(60))), "{drawn}");
        let cools = draw(&[lane("a", [Some(0), Some(0), Some(30), None])], at(60)).unwrap();
        assert!(cools.starts_with(&format!("a  {}{}\n", "█".repeat(30), "░".repeat(30))), "{cools}");
    }

    #[test]
    fn a_moment_is_still_seen_and_nothing_is_nothing() {
        let brief = [
            lane("a", [Some(0), Some(0), Some(0), Some(0)]),
            lane("b", [Some(0), Some(100), Some(100), Some(100)]),
        ];
        assert!(draw(&brief, at(100)).unwrap().starts_with("a  █\n"));
        assert_eq!(draw(&[], at(0)), None);
    }
}
