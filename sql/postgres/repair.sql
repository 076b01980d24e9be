-- Sets the counter to what was counted, by compare-and-set.
UPDATE permitq_semaphore SET in_use = $1 WHERE name = $2 AND in_use = $3
