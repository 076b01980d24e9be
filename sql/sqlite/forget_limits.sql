-- Caps of a semaphore that others have followed before $3 (microseconds), oldest first, at most $4.
DELETE FROM permitq_limit WHERE rowid IN (
    SELECT rowid FROM permitq_limit
     WHERE semaphore = $1 AND since < (SELECT max(since) FROM permitq_limit WHERE semaphore = $2 AND since < $3)
     ORDER BY since LIMIT $4)
