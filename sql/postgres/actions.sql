-- What people did to a task, oldest first.
SELECT (extract(epoch FROM at) * 1000000)::bigint AS at, who, what, detail
  FROM permitq_action WHERE task = $1 ORDER BY id
