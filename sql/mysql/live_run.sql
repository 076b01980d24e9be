-- The newest run of a job that is not over. Read under the job's lock, so that no other can be added meanwhile.
SELECT max(id) AS live FROM permitq_task FORCE INDEX (permitq_task_job) WHERE live_job = ?
