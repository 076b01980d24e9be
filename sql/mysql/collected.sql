-- No more collecting: a caller's own inserts in this session must not pile up.
SET @permitq_ids = NULL
