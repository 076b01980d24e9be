-- Caps of a semaphore that others have followed before $3 (microseconds), oldest first, at most $4.
DELETE FROM permitq_limit WHERE ctid = ANY (ARRAY(
    SELECT l.ctid FROM permitq_limit l
     WHERE l.semaphore = $1
       AND l.since < (SELECT max(n.since) FROM permitq_limit n
                       WHERE n.semaphore = $2 AND n.since < 'epoch'::timestamptz + $3 * interval '1 microsecond')
     ORDER BY l.since LIMIT $4 FOR UPDATE SKIP LOCKED))
