-- A person pauses something. A downstream that is down and paused for that stays so until a person resumes it.
INSERT INTO permitq_pause (what, name, who, why) VALUES ($1, $2, $3, $4)
    ON CONFLICT (what, name) DO UPDATE SET until = NULL, task = NULL, claim_no = NULL, who = excluded.who, why = excluded.why
