-- What `permitq doctor` judges: how it stands. Nobody else has to be asked for that here.
SELECT 'connections' AS name, '1' AS value
