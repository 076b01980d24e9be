-- These tasks (a JSON list of ids), locked by ascending id: the one lock order.
SELECT t.id, t.state, t.dependents FROM permitq_task t
 WHERE t.id = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text($1::json)))
 ORDER BY t.id
   FOR UPDATE
