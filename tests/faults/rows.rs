//! `MySQL` counts the rows that an UPDATE matched or, where something between us takes a flag of the driver's out, those that
//! it changed. No decision depends on which; nor on the instant, where they are matched.

use std::net::SocketAddr;
use std::time::Duration;

use loadtest::servers::Server;
use permitq::model::{NewTask, Outcome, State};
use permitq::store::{Cancelled, Database, Left, Recorded, Retried};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{block_in_place, spawn_blocking};

use crate::support::{Consumer, Db, LEASE, ended, registration};

/// Every session's time stands still.
const STILL: &str = "--init-connect=SET timestamp = 1800000000.5";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn matched_or_changed_every_decision_is_the_same() {
    let server = spawn_blocking(|| Server::mariadb_with(false, &[STILL])).await.unwrap();
    let mut db = Db::alone_on(&server).await;
    let direct = db.url().to_owned();
    let host = direct.rsplit_once('@').unwrap().1.split_once('/').unwrap().0.to_owned();
    for found_rows in [true, false] {
        if !found_rows {
            let on = "SET GLOBAL init_connect = ''";
            block_in_place(|| server.execute(on));
        }
        let proxy = without_found_rows(host.parse().unwrap(), found_rows).await;
        let url = direct.replace(&host, &proxy.to_string());
        db.database = Database::new(&url).unwrap();
        decisions(&db, found_rows).await;
    }
}

/// Each is asked twice.
async fn decisions(db: &Db, found_rows: bool) {
    for table in ["task", "cooling", "attempt", "consumer"] {
        db.sql(&format!("DELETE FROM permitq_{table}")).await;
    }
    db.sql("UPDATE permitq_semaphore SET in_use = 0, max_permits = 4").await;
    let mut store = db.store();
    let first = store.clock().await.unwrap();
    assert_eq!(store.clock().await.unwrap() == first, found_rows, "whether time stands still");
    store.register(&registration("a")).await.unwrap();
    let mut a = Consumer::new("a", db.store());
    for _ in 0..2 {
        assert_eq!(store.beat("a", LEASE).await.unwrap(), Some(vec![]), "{found_rows}");
    }
    assert!(store.set_max("default", 2, "ann").await.unwrap());
    let task = store.enqueue(&[NewTask::new("call", "{}").key("k")]).await.unwrap()[0];
    let again = store.enqueue(&[NewTask::new("call", "{}").key("k")]).await.unwrap()[0];
    assert_eq!((task.created, again.created, task.id), (true, false, again.id));

    let claim = a.claim_one().await;
    assert!(a.claim(1).await.is_empty());
    let done = [ended(claim, &Outcome::failed("no"))];
    for _ in 0..2 {
        assert_eq!(a.finish(&done).await, [Recorded::Done]);
        db.holds(0).await;
    }
    assert_eq!(store.retry(task.id, "ann").await.unwrap(), Retried::Done);
    assert_eq!(store.retry(task.id, "ann").await.unwrap(), Retried::NotFinished(State::Pending));
    let claim = a.claim_one().await;
    let late = ended(claim, &Outcome::succeeded(None));
    assert_eq!(store.cancel(task.id, "ann").await.unwrap(), Cancelled::Cooling);
    assert_eq!(store.cancel(task.id, "ann").await.unwrap(), Cancelled::Finished(State::Cancelled));
    assert_eq!(a.finish(std::slice::from_ref(&late)).await, [Recorded::Lost]);
    for (kept, in_use) in [(true, 0), (false, 0)] {
        assert_eq!(store.late("a", &late).await.unwrap(), kept);
        db.holds(in_use).await;
    }
    assert_eq!(store.cancel(db.enqueue(1).await[0], "ann").await.unwrap(), Cancelled::Done);

    // Taken back once, and cooled once.
    db.enqueue(1).await;
    let _lost = a.claim_one().await;
    db.age("permitq_consumer", "lease_until", Duration::from_hours(1), "1 = 1").await;
    let expired = store.expired().await.unwrap().remove(0);
    assert!(store.fence(&expired).await.unwrap());
    assert!(!store.fence(&expired).await.unwrap());
    assert_eq!(store.beat("a", LEASE).await.unwrap(), None);
    store.leave("a", Left::Draining).await.unwrap();
    assert_eq!(store.beat("a", LEASE).await.unwrap(), None, "gone is final");
    assert_eq!(store.reclaim("r", LEASE, 0, 9).await.unwrap().len(), 1);
    assert_eq!(store.reclaim("r", LEASE, 0, 9).await.unwrap().len(), 0);
    db.holds(1).await;
    db.age("permitq_cooling", "until", Duration::from_hours(24), "1 = 1").await;
    assert_eq!(db.end_coolings(9).await.unwrap(), 1);
    assert_eq!(db.end_coolings(9).await.unwrap(), 0);
    for _ in 0..2 {
        assert_eq!(store.repair("default", LEASE, "ann").await.unwrap().drift(), 0);
    }
    db.holds(0).await;
}

/// A proxy that leaves the flag in the client's greeting as it is, or takes it out.
async fn without_found_rows(server: SocketAddr, leave: bool) -> SocketAddr {
    const FOUND_ROWS: u8 = 2;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut server = TcpStream::connect(server).await?;
                // The server speaks first. A packet is its length in three bytes, a number, and what it says.
                let greeting = packet(&mut server).await?;
                client.write_all(&greeting).await?;
                let mut answer = packet(&mut client).await?;
                assert_eq!(answer[4] & FOUND_ROWS, FOUND_ROWS, "the driver sets it");
                if !leave {
                    answer[4] &= !FOUND_ROWS;
                }
                server.write_all(&answer).await?;
                copy_bidirectional(&mut client, &mut server).await
            });
        }
    });
    address
}

async fn packet(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut packet = vec![0; 4];
    stream.read_exact(&mut packet).await?;
    let length = u32::from_le_bytes([packet[0], packet[1], packet[2], 0]);
    packet.resize(4 + usize::try_from(length).unwrap(), 0);
    stream.read_exact(&mut packet[4..]).await?;
    Ok(packet)
}
