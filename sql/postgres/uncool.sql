-- Ends coolings by their ids (a JSON list). The rows that go are the permits to free.
DELETE FROM permitq_cooling WHERE id = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text($1::json)))
