-- When the last cooling of a task ends.
SELECT max(until) AS until FROM permitq_cooling WHERE task = $1
