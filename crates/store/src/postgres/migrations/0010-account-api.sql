-- What a key is for: null are calls.
ALTER TABLE key ADD COLUMN scope text;

-- Secrets that were changed for others and work a while longer; afterwards they stay for a day, so that every cache hears of their end.
CREATE TABLE key_former (
  hash bytea PRIMARY KEY,
  key_id bytea NOT NULL REFERENCES key (id),
  prefix text NOT NULL,
  until bigint NOT NULL
);
CREATE INDEX key_former_key ON key_former (key_id);

-- The log of who changed what is one for all: whose it is, and the request it came with.
ALTER TABLE operator_event ADD COLUMN account_id bytea;
ALTER TABLE operator_event ADD COLUMN request_id text;
CREATE INDEX operator_event_account ON operator_event (account_id, seq) WHERE account_id IS NOT NULL;
CREATE INDEX operator_event_subject ON operator_event (subject, seq);

-- Replies to changes that came with an Idempotency-Key; `status` is null while one is under way. A secret is in none of them.
CREATE TABLE change_reply (
  owner text NOT NULL,
  key_hash bytea NOT NULL,
  fingerprint bytea NOT NULL,
  at bigint NOT NULL,
  status integer,
  body text,
  PRIMARY KEY (owner, key_hash)
);
CREATE INDEX change_reply_at ON change_reply (at);

-- Tries to deliver webhooks, the newest of each account.
CREATE TABLE webhook_delivery (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id bytea NOT NULL,
  call_id bytea NOT NULL,
  at bigint NOT NULL,
  url text NOT NULL,
  attempt integer NOT NULL,
  status integer,
  outcome text NOT NULL
);
CREATE INDEX webhook_delivery_account ON webhook_delivery (account_id, seq);
