-- A trigger goes.
DELETE FROM permitq_trigger WHERE id = ?
