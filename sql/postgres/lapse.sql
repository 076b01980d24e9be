-- Not worth starting any more: these tasks (a JSON list of ids) are called off.
UPDATE permitq_task SET state = 'cancelled', finished_at = statement_timestamp(), waiting_for = 0, error = 'expired'
 WHERE id = ANY (ARRAY(SELECT value::bigint FROM json_array_elements_text($1::json)))
   AND state || '' IN ('blocked', 'scheduled', 'pending') AND expires_at <= statement_timestamp()
