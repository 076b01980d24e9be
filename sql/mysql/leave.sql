-- A consumer drains or goes; 'gone' is final.
UPDATE permitq_consumer SET state = ? WHERE id = ? AND state <> 'gone'
