//! Everything at once, for a few seconds: the short form of `loadtest torture`.

use std::time::Duration;

use loadtest::torture::Torture;

use crate::support::Db;

contract! {
    thirty_two_clients_do_everything_at_once_and_the_books_balance,
}

async fn thirty_two_clients_do_everything_at_once_and_the_books_balance(db: Db) {
    let torture = Torture { url: db.url().to_owned(), time: Duration::from_secs(5), clients: 32 };
    let report = torture.run().await.unwrap();
    assert!(report.holds(), "\n{report}");
    assert!(report.audits > 0 && report.done.contains_key("exchange"), "\n{report}");
    db.holds(0).await;
}
