-- What a key is for: null are calls.
ALTER TABLE key ADD COLUMN scope TEXT;

-- Secrets that were changed for others and work a while longer; afterwards they stay for a day, so that every cache hears of their end.
CREATE TABLE key_former (
  hash BLOB PRIMARY KEY NOT NULL,
  key_id BLOB NOT NULL REFERENCES key (id),
  prefix TEXT NOT NULL,
  until INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX key_former_key ON key_former (key_id);

-- The log of who changed what is one for all: whose it is, and the request it came with.
ALTER TABLE operator_event ADD COLUMN account_id BLOB;
ALTER TABLE operator_event ADD COLUMN request_id TEXT;
CREATE INDEX operator_event_account ON operator_event (account_id, seq) WHERE account_id IS NOT NULL;
CREATE INDEX operator_event_subject ON operator_event (subject, seq);

-- Replies to changes that came with an Idempotency-Key; `status` is null while one is under way. A secret is in none of them.
CREATE TABLE change_reply (
  owner TEXT NOT NULL,
  key_hash BLOB NOT NULL,
  fingerprint BLOB NOT NULL,
  at INTEGER NOT NULL,
  status INTEGER,
  body TEXT,
  PRIMARY KEY (owner, key_hash)
) WITHOUT ROWID;
CREATE INDEX change_reply_at ON change_reply (at);

-- Tries to deliver webhooks, the newest of each account.
CREATE TABLE webhook_delivery (
  seq INTEGER PRIMARY KEY,
  account_id BLOB NOT NULL,
  call_id BLOB NOT NULL,
  at INTEGER NOT NULL,
  url TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  status INTEGER,
  outcome TEXT NOT NULL
);
CREATE INDEX webhook_delivery_account ON webhook_delivery (account_id, seq);
