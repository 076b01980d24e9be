-- Which schema is this, who may run on it, and the installation's name.
SELECT version, min_binary, installation FROM permitq_schema
