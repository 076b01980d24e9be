-- A person pauses something. A downstream that is down and paused for that stays so until a person resumes it.
INSERT INTO permitq_pause (what, name, who, why) VALUES (?, ?, ?, ?)
    ON DUPLICATE KEY UPDATE until = NULL, task = NULL, claim_no = NULL, who = VALUES(who), why = VALUES(why)
