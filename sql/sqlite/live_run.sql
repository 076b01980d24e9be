-- The newest run of a job that is not over. Read under the job's lock, so that no other can be added meanwhile.
SELECT max(id) AS live FROM permitq_task WHERE job = $1 AND finished_at IS NULL
