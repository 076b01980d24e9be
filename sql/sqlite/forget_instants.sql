-- These records of planned instants (a JSON list) that retention has read.
DELETE FROM permitq_instant WHERE id IN (SELECT value FROM json_each($1))
