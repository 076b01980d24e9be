-- A consumer drains or goes; 'gone' is final.
UPDATE permitq_consumer SET state = $1 WHERE id = $2 AND state <> 'gone'
