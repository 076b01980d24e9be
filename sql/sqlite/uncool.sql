-- Ends coolings by their ids (a JSON list). The rows that go are the permits to free.
DELETE FROM permitq_cooling WHERE id IN (SELECT value FROM json_each($1))
