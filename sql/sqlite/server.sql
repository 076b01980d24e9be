-- What answers here.
SELECT sqlite_version()
