-- READ COMMITTED, set for the session: each statement sees what was committed before it.
START TRANSACTION
