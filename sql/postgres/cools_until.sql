-- When the last cooling of a task ends. A statement of its own: what the task's lock waited for must be seen.
SELECT (extract(epoch FROM max(until)) * 1000000)::bigint AS until FROM permitq_cooling WHERE task = $1
