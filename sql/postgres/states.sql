-- How many tasks are in each state, of one kind or (NULL) of all.
SELECT state, count(*) FROM permitq_task WHERE $1 IS NULL OR kind = $2 GROUP BY state
