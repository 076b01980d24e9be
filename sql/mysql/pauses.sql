-- What is paused, for people.
SELECT what, name, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', since) AS since,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', until) AS until, failures, task, claim_no, who, why
  FROM permitq_pause ORDER BY what, name
