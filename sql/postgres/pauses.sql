-- What is paused, for people.
SELECT what, name, (extract(epoch FROM since) * 1000000)::bigint AS since,
       (extract(epoch FROM until) * 1000000)::bigint AS until, failures, task, claim_no, who, why
  FROM permitq_pause ORDER BY what, name
