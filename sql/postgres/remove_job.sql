-- A job goes; its runs and what became of its instants stay.
DELETE FROM permitq_job WHERE name = $1
