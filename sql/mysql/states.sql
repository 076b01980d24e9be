-- How many tasks are in each state, of one kind or (NULL) of all.
SELECT state, count(*) FROM permitq_task WHERE ? IS NULL OR kind = ? GROUP BY state
