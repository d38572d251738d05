-- Money that customers pay in. An order is written before anybody is asked for money; `record` has all of it, the columns beside
-- it what is looked for and summed. `pay_event` is the news of payment providers, until somebody has looked.
CREATE TABLE pay_order (
  id BLOB PRIMARY KEY NOT NULL,
  account_id BLOB NOT NULL,
  provider TEXT NOT NULL,
  state TEXT NOT NULL,
  amount_minor INTEGER NOT NULL CHECK (amount_minor > 0),
  currency TEXT NOT NULL,
  credit INTEGER NOT NULL CHECK (credit > 0),
  taken INTEGER NOT NULL CHECK (taken BETWEEN 0 AND credit),
  owed INTEGER NOT NULL CHECK (owed >= 0 AND taken + owed <= credit),
  session TEXT,
  payment TEXT,
  created_at INTEGER NOT NULL,
  next_look_at INTEGER,
  idem BLOB,
  fingerprint BLOB,
  version INTEGER NOT NULL,
  record TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX pay_order_account ON pay_order (account_id, id);
CREATE UNIQUE INDEX pay_order_session ON pay_order (provider, session) WHERE session IS NOT NULL;
CREATE INDEX pay_order_payment ON pay_order (provider, payment) WHERE payment IS NOT NULL;
CREATE INDEX pay_order_look ON pay_order (next_look_at) WHERE next_look_at IS NOT NULL;
CREATE INDEX pay_order_owed ON pay_order (account_id) WHERE owed > 0;
CREATE UNIQUE INDEX pay_order_idem ON pay_order (account_id, idem) WHERE idem IS NOT NULL;
CREATE TABLE pay_event (
  provider TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  order_id BLOB,
  subject TEXT,
  received_at INTEGER NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER,
  done_at INTEGER,
  outcome TEXT,
  PRIMARY KEY (provider, id)
) WITHOUT ROWID;
CREATE INDEX pay_event_next ON pay_event (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX pay_event_done ON pay_event (done_at) WHERE done_at IS NOT NULL;
-- Redemption codes, as hashes.
CREATE TABLE code_batch (
  id BLOB PRIMARY KEY NOT NULL,
  amount INTEGER NOT NULL CHECK (amount > 0),
  trial INTEGER NOT NULL,
  count INTEGER NOT NULL,
  per_account INTEGER NOT NULL,
  ends_at INTEGER,
  note TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  revoked_at INTEGER
) WITHOUT ROWID;
CREATE TABLE code (
  hash BLOB PRIMARY KEY NOT NULL,
  batch_id BLOB NOT NULL,
  used_by BLOB,
  used_at INTEGER
) WITHOUT ROWID;
CREATE INDEX code_used ON code (batch_id, used_by) WHERE used_by IS NOT NULL;
