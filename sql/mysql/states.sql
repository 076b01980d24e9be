-- How many tasks are in each state.
SELECT state, count(*) FROM permitq_task GROUP BY state
