-- What is paused, for people.
SELECT what, name, since, until, failures, task, claim_no, who, why FROM permitq_pause ORDER BY what, name
