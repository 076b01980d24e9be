//! What a hand at the tables has written cannot steer the terminal of whoever looks at them.

use super::Bench;

/// Clears the screen, in two ways; names the window; goes back over what was printed; rings; turns what follows around.
const EVIL: &str =
    "'a' || char(27) || '[2J' || char(155) || '2J' || char(27) || ']0;b' || char(7) || char(13) || char(8)
     || char(127) || char(8238) || 'c'";
/// What we print ourselves: bold, red, and their end.
const OURS: [&str; 3] = ["\u{1b}[1m", "\u{1b}[31m", "\u{1b}[0m"];

#[tokio::test]
async fn what_is_in_the_tables_steers_no_terminal() {
    let bench = Bench::migrated();
    bench
        .sql(&format!(
            "INSERT INTO permitq_task (kind, biz_key, payload, source) VALUES ({EVIL}, {EVIL}, json_quote({EVIL}), {EVIL});
             INSERT INTO permitq_task (kind) VALUES ({EVIL}), ('b')"
        ))
        .await;
    assert_eq!(bench.claim("b", 1).await.len(), 1);
    // One that failed, one that succeeded, one that runs; a permit that cools; a consumer; and the log of it all.
    bench
        .sql(&format!(
            "UPDATE permitq_task SET state = 'cancelled', error = {EVIL}, finished_at = run_at WHERE id = 1;
             UPDATE permitq_task SET kind = {EVIL}, result = {EVIL}, error = {EVIL} WHERE id = 3;
             UPDATE permitq_consumer SET name = {EVIL}, host = {EVIL}, serves = json_object({EVIL}, {EVIL});
             INSERT INTO permitq_attempt (task, claim_no, kind, semaphore, consumer, claimed_at, ended_at, outcome, ended_by, error)
             SELECT 1, 1, {EVIL}, 'default', {EVIL}, 1000000, 2000000, 'failed', {EVIL}, {EVIL};
             INSERT INTO permitq_action (who, what, task, detail) VALUES ({EVIL}, {EVIL}, 1, {EVIL})"
        ))
        .await;
    for command in [
        &["tasks"][..],
        &["task", "show", "1"],
        &["task", "explain", "1"],
        &["task", "explain", "2"],
        &["task", "explain", "3"],
        &["task", "show", "2"],
        &["task", "show", "3"],
        &["permits"],
        &["audit"],
        &["doctor"],
    ] {
        for json in [&[][..], &["--json"]] {
            let args = [command, json].concat();
            // As on a terminal: nobody takes anything out on the way.
            let output = bench.command(&args).env("CLICOLOR_FORCE", "1").output().unwrap();
            let said = [output.stdout, output.stderr].concat();
            let mut said = String::from_utf8(said).unwrap();
            assert!(said.len() > 20, "{args:?}: {said:?}");
            if command[0] == "task" {
                assert!(said.contains("[2J"), "{args:?} shows it, made harmless: {said:?}");
            }
            for ours in OURS {
                said = said.replace(ours, "");
            }
            let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!said.contains(steers), "{args:?}: {said:?}");
        }
    }
}
