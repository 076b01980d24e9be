-- A person did something.
INSERT INTO permitq_action (who, what, task, detail) VALUES (?, ?, ?, ?)
