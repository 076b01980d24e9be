-- What people did to a task, oldest first.
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', at) AS at, who, what, detail
  FROM permitq_action WHERE task = ? ORDER BY id
