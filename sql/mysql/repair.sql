-- Sets the counter to what was counted, by compare-and-set.
UPDATE permitq_semaphore SET in_use = ? WHERE name = ? AND in_use = ?
