-- When the last cooling of a task ends. A statement of its own: what the task's lock waited for must be seen.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', max(until)) AS until FROM permitq_cooling WHERE task = ?
