-- Secrets that open realtime sessions in the name of a key, for a while. The session is JSON that this room does not read.
CREATE TABLE client_secret (
  hash BLOB PRIMARY KEY NOT NULL,
  account_id BLOB NOT NULL REFERENCES account (id),
  key_id BLOB NOT NULL REFERENCES key (id),
  model TEXT NOT NULL,
  session TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX client_secret_account ON client_secret (account_id, expires_at);
CREATE INDEX client_secret_end ON client_secret (expires_at);
