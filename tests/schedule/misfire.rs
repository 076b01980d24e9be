//! Downtime of minutes and of weeks, by each policy: what runs, and what is on record.

use permitq::model::schedule::MisfirePolicy;

use super::*;

contract![downtime_follows_the_policy,];

/// A minute's cron in New York, first due at the last of `minutes` full minutes that are over.
async fn down(db: &Db, name: &str, minutes: u64, policy: MisfirePolicy, overlap: Overlap) -> i64 {
    let mut job = job(name);
    job.misfire = Misfire { policy, after: seconds(60), most: 3 };
    job.overlap = overlap;
    let minute = now(db).await.as_second().div_euclid(60) * 60;
    let first = Timestamp::from_second(minute).unwrap() - seconds(60 * (minutes - 1));
    add_at(db, &job, &cron("* * * * *", "America/New_York"), first).await
}

async fn downtime_follows_the_policy(db: Db) {
    use Fate::{Fired, Misfired, Overlap as Skipped};
    use MisfirePolicy::{FireAll, FireOnce, Skip};
    let weeks = 3 * 7 * 24 * 60;
    for (name, minutes, policy, overlap, expected) in [
        ("minutes once", 10, FireOnce, Overlap::Skip, &[(Misfired, 9), (Fired, 1)][..]),
        ("weeks once", weeks, FireOnce, Overlap::Skip, &[(Misfired, 10_000), (Fired, 1)]),
        // The last minute is not over yet, and so not late.
        ("minutes skip", 10, Skip, Overlap::Skip, &[(Misfired, 9), (Fired, 1)]),
        ("weeks skip", weeks, Skip, Overlap::Skip, &[(Misfired, 10_000), (Fired, 1)]),
        ("minutes all", 10, FireAll, Overlap::Allow, &[(Misfired, 7), (Fired, 1), (Fired, 1), (Fired, 1)]),
        (
            "weeks all",
            weeks,
            FireAll,
            Overlap::Allow,
            &[(Misfired, 10_000), (Fired, 1), (Fired, 1), (Fired, 1)],
        ),
        ("all, one at a time", 10, FireAll, Overlap::Queue, &[(Misfired, 7), (Fired, 1)]),
        (
            "all, but none beside another",
            10,
            FireAll,
            Overlap::Skip,
            &[(Misfired, 7), (Fired, 1), (Skipped, 2)],
        ),
    ] {
        // The minute must not change between what is planned and what is looked at.
        let second = now(&db).await.as_second().rem_euclid(60);
        if second > 40 {
            tokio::time::sleep(seconds(61 - second.unsigned_abs())).await;
        }
        let id = down(&db, name, minutes, policy, overlap).await;
        let first = trigger(&db, id).await.next_fire_at.unwrap();
        pass(&db).await;
        assert_eq!(fates(&db, name).await, expected, "{name}");
        // Every instant is accounted for, without a gap, and the next is in time.
        let all = instants(&db, name).await;
        assert_eq!(all[0].planned.first, first, "{name}");
        for (one, next) in all.iter().zip(&all[1..]) {
            assert_eq!(one.planned.last + seconds(60), next.planned.first, "{name}");
        }
        let next = trigger(&db, id).await.next_fire_at.unwrap();
        assert_eq!(all[all.len() - 1].planned.last + seconds(60), next, "{name}");
        assert!(name == "all, one at a time" || next > now(&db).await, "{name}: {next}");
    }
    // What waits for its turn gets it.
    for _ in 0..2 {
        finish_all(&db).await;
        pass(&db).await;
    }
    let queued = [(Misfired, 7), (Fired, 1), (Fired, 1), (Fired, 1)];
    assert_eq!(fates(&db, "all, one at a time").await[..4], queued);
}
