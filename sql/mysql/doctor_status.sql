-- What `permitq doctor` judges: how it stands.
SHOW SESSION STATUS WHERE Variable_name IN ('Threads_connected', 'Ssl_cipher')
