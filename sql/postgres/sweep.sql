-- Every moment at which permits of a semaphore were taken (+1) or freed (-1) from $3 to $7, or its cap set (what = 'limit',
-- n = the cap). A half-open interval: what ends at an instant has ended before what begins there.
SELECT (extract(epoch FROM m.at) * 1000000)::bigint AS at, what, n FROM (
    SELECT since AS at, 0 AS o, 'limit' AS what, max_permits AS n FROM permitq_limit WHERE semaphore = $1
    UNION ALL
    SELECT permit_released_at, 1, 'free', -1 FROM permitq_attempt
     WHERE semaphore = $2 AND permit_released_at >= 'epoch'::timestamptz + $3 * interval '1 microsecond'
    UNION ALL
    SELECT claimed_at, 2, 'take', 1 FROM permitq_attempt
     WHERE semaphore = $4
       AND (permit_released_at IS NULL OR permit_released_at >= 'epoch'::timestamptz + $5 * interval '1 microsecond')
    UNION ALL
    SELECT started_at, 2, 'take', 1 FROM permitq_task WHERE semaphore = $6 AND state = 'running'
) m WHERE (extract(epoch FROM m.at) * 1000000)::bigint < $7 ORDER BY m.at, o
