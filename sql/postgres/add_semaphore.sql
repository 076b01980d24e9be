-- A further downstream.
INSERT INTO permitq_semaphore (name, max_permits) VALUES ($1, $2)
