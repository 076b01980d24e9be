//! One task per due instant, whoever looks, dies or asks.

use futures_util::future::join_all;
use permitq::model::schedule::{Fate, KeyTemplate, Plan, When, decide};
use permitq::model::{NewTask, State};
use permitq::store::{Added, NewSchedule, RanByHand};

use super::*;

contract![
    an_instant_is_one_task_however_many_look,
    dying_between_statements_leaves_nothing,
    intervals_count_from_the_plan_and_not_from_restarts,
    a_report_of_one_day_exists_once_whoever_asks,
    a_trigger_that_cannot_be_fired_holds_up_no_other,
    what_is_added_again_is_found,
    once_and_a_delay_after_the_end,
    a_delay_whose_key_exists_goes_on_from_now,
    a_trigger_ends,
];

async fn an_instant_is_one_task_however_many_look(db: Db) {
    let id = add_due(&db, &job("report")).await;
    let planned = trigger(&db, id).await.next_fire_at.unwrap();
    let mut schedulers: Vec<_> = (0..8).map(|_| scheduler(&db)).collect();
    let passes = join_all(schedulers.iter_mut().map(Scheduler::pass)).await;
    assert!(passes.iter().all(Result::is_ok), "{passes:?}");
    let [task] = runs(&db, "report").await[..] else { panic!() };
    let run = db.task(task).await;
    assert_eq!((run.biz_key.unwrap(), run.run_at), (format!("report/{planned}"), planned));
    assert_eq!((&*run.source, run.state), ("schedule:report", State::Pending));
    let [one] = &instants(&db, "report").await[..] else { panic!() };
    assert_eq!(
        (one.fate, one.task, one.trigger, one.planned.first),
        (Fate::Fired, Some(task), Some(id), planned)
    );
    assert_eq!(trigger(&db, id).await.next_fire_at, Some(planned + seconds(3600)));
}

async fn dying_between_statements_leaves_nothing(db: Db) {
    let id = add_due(&db, &job("report")).await;
    let due = db.store().due_triggers(9).await.unwrap().remove(0);
    let decision =
        decide(due.trigger.when.as_ref().unwrap(), due.trigger.next_fire_at.unwrap(), due.now, &due.misfire);
    for (event, table) in [
        ("UPDATE", "permitq_trigger"),
        ("INSERT", "permitq_task"),
        ("UPDATE", "permitq_job"),
        ("INSERT", "permitq_instant"),
    ] {
        db.fail_on(event, table).await;
        assert!(db.store().fire(&due.trigger, &decision, due.now).await.is_err(), "{event} {table}");
        db.mend(table).await;
        assert_eq!(db.int("SELECT count(*) FROM permitq_task").await, 0, "{event} {table}");
        assert_eq!(fates(&db, "report").await, [], "{event} {table}");
        assert_eq!(trigger(&db, id).await.next_fire_at, due.trigger.next_fire_at, "{event} {table}");
    }
    let runs = db.store().fire(&due.trigger, &decision, due.now).await.unwrap().unwrap();
    assert!(runs.len() == 1 && fired(&runs[0]));
    assert_eq!(db.store().fire(&due.trigger, &decision, due.now).await.unwrap(), None, "fired once");
}

/// Each scheduler lives for one pass, and comes late by another phase: all instants are there, each once.
async fn intervals_count_from_the_plan_and_not_from_restarts(db: Db) {
    let mut report = job("report");
    report.overlap = Overlap::Allow;
    let start = now(&db).await - seconds(3600);
    let id = add_at(&db, &report, &every(20, start), now(&db).await).await;
    for n in 0..15 {
        let planned = start + seconds(20 * n);
        let one = trigger(&db, id).await;
        let when = one.when.as_ref().unwrap();
        // What time it is for a look that comes between this instant and the next but one.
        let late = planned + Duration::from_millis(fastrand::u64(0..35_000));
        if n == 0 {
            set_next(&db, id, start).await;
            continue;
        }
        let at = one.next_fire_at.unwrap();
        if at > late {
            continue;
        }
        let decision = decide(when, at, late, &Misfire::default());
        db.store().fire(&one, &decision, late).await.unwrap().unwrap();
    }
    let all = instants(&db, "report").await;
    assert!(all.len() > 3);
    for (n, one) in (0..).zip(&all) {
        assert_eq!((one.fate, one.planned.first), (Fate::Fired, start + seconds(20 * n)));
    }
}

async fn a_report_of_one_day_exists_once_whoever_asks(db: Db) {
    let mut daily = job("daily");
    daily.key_template = KeyTemplate::parse("DAILY_REPORT:{date}", "daily").unwrap();
    let tokyo = When { zone: When::zone("Asia/Tokyo").unwrap(), ..every(60, now(&db).await - seconds(60)) };
    let first = now(&db).await;
    let id = add_at(&db, &daily, &tokyo, first).await;
    let key = |at: Timestamp| format!("DAILY_REPORT:{}", at.to_zoned_datetime(tokyo.zone.clone()).date());
    let asked = db.enqueue_one(NewTask::new("call", "{}").key(key(first))).await;
    pass(&db).await;
    let [one] = &instants(&db, "daily").await[..] else { panic!() };
    assert_eq!((one.fate, one.task), (Fate::Exists, Some(asked)));
    // By hand as well, unless the day has just changed.
    match db.store().run_by_hand("daily", false, "me").await.unwrap() {
        RanByHand::Task(run) if key(now(&db).await) == key(first) => {
            assert_eq!((run.id, run.created), (asked, false));
        }
        other => assert_ne!(key(now(&db).await), key(first), "{other:?}"),
    }
    assert!(trigger(&db, id).await.next_fire_at > Some(first));
}

async fn a_trigger_that_cannot_be_fired_holds_up_no_other(db: Db) {
    let (mut none, mut late) = (job("nowhere"), job("late"));
    let second = db.store().add_semaphore("second", 1, "me").await;
    second.unwrap();
    for job in [&mut none, &mut late] {
        job.task.semaphore = Some("second".to_owned());
    }
    let bad = add_due(&db, &job("bad")).await;
    add_due(&db, &none).await;
    let good = add_due(&db, &job("good")).await;
    db.sql(&format!(
        "UPDATE permitq_trigger SET kind = 'cron', every = NULL, expression = 'at noon', dialect = 'unix' WHERE id = {bad}"
    ))
    .await;
    db.sql("UPDATE permitq_job SET semaphore = 'third' WHERE name = 'nowhere'").await;
    let mut one = scheduler(&db);
    while one.pass().await.unwrap().is_zero() {}
    assert_eq!(fates(&db, "good").await, [(Fate::Fired, 1)]);
    assert_eq!((runs(&db, "bad").await.len(), runs(&db, "nowhere").await.len()), (0, 0));
    assert!(trigger(&db, bad).await.when.unwrap_err().to_string().contains("at noon"));
    // Mended, and looked at by somebody who has not put it aside.
    db.sql("UPDATE permitq_job SET semaphore = 'second' WHERE name = 'nowhere'").await;
    finish_all(&db).await;
    due_again(&db, good).await;
    pass(&db).await;
    assert_eq!(fates(&db, "nowhere").await, [(Fate::Fired, 1)]);
}

async fn what_is_added_again_is_found(db: Db) {
    let (report, noon) = (job("report"), cron("0 12 * * *", "Europe/Berlin"));
    let id = add_at(&db, &report, &noon, at("2099-01-01T00:00:00Z")).await;
    let add = async |name: &str, job: Option<&NewJob>, when: &When| {
        let new = NewSchedule { name, job, when, start_is_given: false, first: None, who: "me" };
        db.store().add_schedule(&new).await.unwrap()
    };
    assert_eq!(add("report", Some(&report), &noon).await, Added::Trigger { id, created: false });
    assert_eq!(add("report", None, &noon).await, Added::Trigger { id, created: false });
    for other in [cron("0 13 * * *", "Europe/Berlin"), cron("0 12 * * *", "UTC"), every(60, noon.start)] {
        let added = add("report", None, &other).await;
        assert!(matches!(added, Added::Trigger { created: true, .. }), "{added:?}");
    }
    assert_eq!(db.store().triggers(Some("report")).await.unwrap().len(), 4);
    assert_eq!(add("other", None, &noon).await, Added::NoJob);
    let mut another = job("report");
    another.task.kind = "mail".to_owned();
    another.overlap = Overlap::Queue;
    let words = ["--kind is call, not mail", "--overlap is skip, not queue"].map(str::to_owned).to_vec();
    assert_eq!(add("report", Some(&another), &noon).await, Added::Differs(words));

    // As it was stored, whole.
    let mut all = job("all");
    all.task = NewTask {
        payload: r#"{"a":  1}"#.to_owned(),
        priority: -3,
        timeout: Some(Duration::from_millis(2500)),
        max_attempts: Some(7),
        on_abandon: Some(permitq::model::OnAbandon::Fail),
        ..all.task
    };
    all.key_template = KeyTemplate::parse("{job} größe {date}", "all").unwrap();
    all.misfire =
        Misfire { policy: permitq::model::schedule::MisfirePolicy::FireAll, after: seconds(5), most: 9 };
    all.overlap = Overlap::Allow;
    let start = at("2027-03-01T10:00:00.123Z");
    let when = When { end: Some(start + seconds(90)), ..every(30, start) };
    add_at(&db, &all, &when, start).await;
    let stored = db.store().jobs(Some("all")).await.unwrap().remove(0);
    assert_eq!(stored.job.differences(&all), [""; 0]);
    let stored = db.store().triggers(Some("all")).await.unwrap().remove(0);
    let back = stored.when.unwrap();
    assert_eq!((back.start, back.end, back.plan.every()), (start, when.end, Some(seconds(30))));
    assert_eq!(stored.next_fire_at, Some(start));
}

async fn once_and_a_delay_after_the_end(db: Db) {
    let start = now(&db).await - seconds(1);
    let once = When { plan: Plan::Once, ..every(1, start) };
    let id = add_at(&db, &job("once"), &once, start).await;
    let delay = When { plan: Plan::FixedDelay(seconds(3600)), ..every(1, start) };
    let delayed = add_at(&db, &job("delayed"), &delay, start).await;
    pass(&db).await;
    assert_eq!(fates(&db, "once").await, [(Fate::Fired, 1)]);
    assert_eq!(trigger(&db, id).await.next_fire_at, None);
    let [run] = runs(&db, "delayed").await[..] else { panic!() };
    let waiting = trigger(&db, delayed).await;
    assert_eq!((waiting.next_fire_at, waiting.waits_for), (None, Some(run)));
    pass(&db).await;
    assert_eq!(runs(&db, "delayed").await, [run]);

    // An hour after its end, to the microsecond.
    finish_all(&db).await;
    let mut schedulers: Vec<_> = (0..4).map(|_| scheduler(&db)).collect();
    join_all(schedulers.iter_mut().map(Scheduler::pass)).await;
    let ended = db.task(run).await.finished_at.unwrap();
    let waiting = trigger(&db, delayed).await;
    assert_eq!((waiting.next_fire_at, waiting.waits_for), (Some(ended + seconds(3600)), None));
    due_again(&db, delayed).await;
    pass(&db).await;
    let [_, second] = runs(&db, "delayed").await[..] else { panic!() };
    // A run whose row is gone has ended now.
    db.sql(&format!("DELETE FROM permitq_task WHERE id = {second}")).await;
    pass(&db).await;
    let next = trigger(&db, delayed).await.next_fire_at.unwrap();
    assert!(next.duration_since(now(&db).await).as_secs() > 3500, "{next}");
    assert_eq!(runs(&db, "once").await.len(), 1);
}

async fn a_delay_whose_key_exists_goes_on_from_now(db: Db) {
    let mut daily = job("daily");
    daily.key_template = KeyTemplate::parse("{month}", "daily").unwrap();
    let start = now(&db).await - seconds(1);
    let delay = When { plan: Plan::FixedDelay(seconds(3600)), ..every(1, start) };
    let id = add_at(&db, &daily, &delay, start).await;
    let month = start.to_zoned_datetime(TimeZone::UTC).strftime("%Y-%m").to_string();
    db.enqueue_one(NewTask::new("call", "{}").key(month)).await;
    finish_all(&db).await;
    pass(&db).await;
    assert_eq!(fates(&db, "daily").await, [(Fate::Exists, 1)]);
    let one = trigger(&db, id).await;
    assert!(one.waits_for.is_none() && one.next_fire_at.unwrap() > now(&db).await + seconds(3500), "{one:?}");
}

async fn a_trigger_ends(db: Db) {
    let start = now(&db).await - seconds(10);
    let when = When { end: Some(start + seconds(5)), ..every(4, start) };
    let mut short = job("short");
    short.overlap = Overlap::Allow;
    let id = add_at(&db, &short, &when, start).await;
    pass(&db).await;
    assert_eq!(fates(&db, "short").await, [(Fate::Fired, 1); 2]);
    assert_eq!(trigger(&db, id).await.next_fire_at, None);
}
