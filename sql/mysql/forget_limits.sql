-- Caps of a semaphore that others have followed before an instant (microseconds), oldest first. Those that the insert
-- trigger has share-locked are left for later: whoever waited here would hold up further inserts.
DELETE l FROM (SELECT id FROM permitq_limit FORCE INDEX (permitq_limit_since)
                WHERE semaphore = ?
                  AND since < (SELECT max(n.since) FROM permitq_limit n FORCE INDEX (permitq_limit_since)
                                WHERE n.semaphore = ? AND n.since < TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00'))
                ORDER BY since LIMIT ? FOR UPDATE SKIP LOCKED) o
  STRAIGHT_JOIN permitq_limit l FORCE INDEX (PRIMARY) ON l.id = o.id
