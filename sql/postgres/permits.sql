-- Takes (+) or frees (-) permits, always in the transaction that moves the tasks or ends the cooling. Never below zero:
-- a counter edited by hand is the auditor's to repair, not a reason to fail a finish.
UPDATE permitq_semaphore SET in_use = greatest(0, in_use + $1) WHERE name = $2
