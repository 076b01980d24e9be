-- Every moment at which permits of a semaphore were taken (+1) or freed (-1) from ? to ?, or its cap set (what = 'limit',
-- n = the cap). A half-open interval: what ends at an instant has ended before what begins there.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', m.at) AS at, what, n FROM (
    SELECT since AS at, 0 AS o, 'limit' AS what, max_permits AS n FROM permitq_limit WHERE semaphore = ?
    UNION ALL
    SELECT permit_released_at, 1, 'free', -1 FROM permitq_attempt
     WHERE semaphore = ? AND permit_released_at >= TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00')
    UNION ALL
    SELECT claimed_at, 2, 'take', 1 FROM permitq_attempt
     WHERE semaphore = ?
       AND (permit_released_at IS NULL
            OR permit_released_at >= TIMESTAMPADD(MICROSECOND, ?, TIMESTAMP'1970-01-01 00:00:00'))
    UNION ALL
    SELECT started_at, 2, 'take', 1 FROM permitq_task WHERE semaphore = ? AND state = 'running'
) m WHERE TIMESTAMPDIFF(MICROSECOND, '1970-01-01', m.at) < ? ORDER BY m.at, o
