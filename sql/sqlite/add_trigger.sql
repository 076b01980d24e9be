-- A trigger, given as JSON with its instants in microseconds.
INSERT INTO permitq_trigger (job, kind, expression, dialect, zone, every, start_at, end_at, next_fire_at)
SELECT $1 ->> 'job', $1 ->> 'kind', $1 ->> 'expression', $1 ->> 'dialect', $1 ->> 'zone', $1 ->> 'every',
       $1 ->> 'start_at', $1 ->> 'end_at', $1 ->> 'next_fire_at'
