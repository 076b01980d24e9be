-- What people did to a task, oldest first.
SELECT at, who, what, detail FROM permitq_action WHERE task = $1 ORDER BY id
