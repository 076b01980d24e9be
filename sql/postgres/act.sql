-- A person did something.
INSERT INTO permitq_action (who, what, task, detail) VALUES ($1, $2, $3, $4)
