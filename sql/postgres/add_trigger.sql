-- A trigger, given as JSON with its instants in microseconds.
INSERT INTO permitq_trigger (job, kind, expression, dialect, zone, every, start_at, end_at, next_fire_at)
SELECT job, kind, expression, dialect, zone, every, 'epoch'::timestamptz + start_at * interval '1 microsecond',
       'epoch'::timestamptz + end_at * interval '1 microsecond',
       'epoch'::timestamptz + next_fire_at * interval '1 microsecond'
  FROM json_to_record($1::json) AS (job text, kind text, expression text, dialect text, zone text,
                                      every double precision, start_at bigint, end_at bigint,
                                      next_fire_at bigint)
