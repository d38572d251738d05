-- Money is integer nano-USD. Ids are 16 bytes, time first.
CREATE TABLE account (
  id BLOB PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  trial_available INTEGER NOT NULL DEFAULT 0 CHECK (trial_available >= 0),
  paid_available INTEGER NOT NULL DEFAULT 0 CHECK (paid_available >= 0),
  trial_held INTEGER NOT NULL DEFAULT 0 CHECK (trial_held >= 0),
  paid_held INTEGER NOT NULL DEFAULT 0 CHECK (paid_held >= 0),
  topped_up INTEGER NOT NULL DEFAULT 0,
  groups TEXT NOT NULL DEFAULT '[]',
  closed_at INTEGER
) WITHOUT ROWID;
CREATE INDEX account_changed ON account (changed_at);

CREATE TABLE key (
  id BLOB PRIMARY KEY NOT NULL,
  account_id BLOB NOT NULL REFERENCES account (id),
  hash BLOB NOT NULL UNIQUE,
  prefix TEXT NOT NULL,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER,
  models TEXT,
  cidrs TEXT,
  cap INTEGER,
  spent INTEGER NOT NULL DEFAULT 0 CHECK (spent >= 0),
  held INTEGER NOT NULL DEFAULT 0 CHECK (held >= 0)
) WITHOUT ROWID;
CREATE INDEX key_account ON key (account_id);
CREATE INDEX key_changed ON key (changed_at);

CREATE TABLE price (
  id BLOB PRIMARY KEY NOT NULL,
  json TEXT NOT NULL
) WITHOUT ROWID;

-- The ledger. Append-only. `op_id` = call id and a class byte; settle, void and expire share the class, so that the
-- unique index is the rule "one terminal entry per hold".
-- kind: 0 hold, 1 settle, 2 void, 3 expire, 4 extend, 5 write-off, 6 top-up, 7 adjust, 8 refund.
CREATE TABLE entry (
  seq INTEGER PRIMARY KEY,
  op_id BLOB NOT NULL UNIQUE,
  kind INTEGER NOT NULL,
  account_id BLOB NOT NULL,
  key_id BLOB,
  trial INTEGER NOT NULL,
  paid INTEGER NOT NULL,
  take_trial INTEGER NOT NULL DEFAULT 0,
  take_paid INTEGER NOT NULL DEFAULT 0,
  at INTEGER NOT NULL,
  price_id BLOB,
  model TEXT,
  endpoint TEXT,
  expires_at INTEGER,
  paid_only INTEGER,
  reference TEXT,
  actor TEXT,
  reason TEXT,
  call_id BLOB GENERATED ALWAYS AS (CASE WHEN kind IN (6, 7) THEN NULL ELSE substr(op_id, 1, 16) END) VIRTUAL,
  CHECK (kind = 7 OR (trial >= 0 AND paid >= 0)),
  CHECK (take_trial BETWEEN 0 AND max(trial, 0) AND take_paid BETWEEN 0 AND max(paid, 0))
);
CREATE TRIGGER entry_no_update BEFORE UPDATE ON entry BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entry_no_delete BEFORE DELETE ON entry BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;

CREATE TABLE usage (
  account_id BLOB NOT NULL,
  call_id BLOB NOT NULL,
  key_id BLOB NOT NULL,
  at INTEGER NOT NULL,
  ended_at INTEGER NOT NULL,
  endpoint TEXT NOT NULL,
  model TEXT NOT NULL,
  provider TEXT,
  upstream_model TEXT,
  ending INTEGER NOT NULL,
  reason TEXT NOT NULL,
  status INTEGER NOT NULL,
  input INTEGER NOT NULL,
  cache_read INTEGER NOT NULL,
  cache_write_5m INTEGER NOT NULL,
  cache_write_1h INTEGER NOT NULL,
  image_input INTEGER NOT NULL,
  audio_input INTEGER NOT NULL,
  output INTEGER NOT NULL,
  reasoning INTEGER NOT NULL,
  image_output INTEGER NOT NULL,
  audio_output INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  seconds INTEGER NOT NULL,
  estimated INTEGER NOT NULL,
  hold INTEGER NOT NULL,
  charge INTEGER NOT NULL,
  refunded INTEGER NOT NULL DEFAULT 0,
  write_off INTEGER NOT NULL,
  price_id BLOB,
  raw_usage TEXT,
  attempts INTEGER NOT NULL,
  first_byte_ms INTEGER,
  tier TEXT,
  PRIMARY KEY (account_id, call_id)
) WITHOUT ROWID;

CREATE TABLE idem (
  account_id BLOB NOT NULL,
  key_hash BLOB NOT NULL,
  fingerprint BLOB NOT NULL,
  call_id BLOB NOT NULL,
  at INTEGER NOT NULL,
  done INTEGER NOT NULL DEFAULT 0,
  status INTEGER,
  content_type TEXT,
  reply BLOB,
  PRIMARY KEY (account_id, key_hash)
) WITHOUT ROWID;
CREATE INDEX idem_running ON idem (call_id) WHERE done = 0;
CREATE INDEX idem_at ON idem (at);

CREATE TABLE meta (
  name TEXT PRIMARY KEY NOT NULL,
  value INTEGER NOT NULL
) WITHOUT ROWID;

-- Every entry as moves between books: the customer's four pots and the platform's accounts.
CREATE VIEW move AS
  SELECT seq, account_id, 'trial_available' AS source, 'trial_held' AS target, trial AS amount FROM entry WHERE kind IN (0, 4)
  UNION ALL SELECT seq, account_id, 'paid_available', 'paid_held', paid FROM entry WHERE kind IN (0, 4)
  UNION ALL SELECT seq, account_id, 'trial_held', 'revenue', take_trial FROM entry WHERE kind = 1
  UNION ALL SELECT seq, account_id, 'paid_held', 'revenue', take_paid FROM entry WHERE kind = 1
  UNION ALL SELECT seq, account_id, 'trial_held', 'trial_available', trial - take_trial FROM entry WHERE kind IN (1, 2, 3)
  UNION ALL SELECT seq, account_id, 'paid_held', 'paid_available', paid - take_paid FROM entry WHERE kind IN (1, 2, 3)
  UNION ALL SELECT seq, account_id, 'losses', 'revenue', paid FROM entry WHERE kind = 5
  UNION ALL SELECT seq, account_id, 'promotion', 'trial_available', trial FROM entry WHERE kind = 6
  UNION ALL SELECT seq, account_id, 'cash', 'paid_available', paid FROM entry WHERE kind = 6
  UNION ALL SELECT seq, account_id, 'adjustments', 'trial_available', trial FROM entry WHERE kind = 7
  UNION ALL SELECT seq, account_id, 'adjustments', 'paid_available', paid FROM entry WHERE kind = 7
  UNION ALL SELECT seq, account_id, 'revenue', 'trial_available', trial FROM entry WHERE kind = 8
  UNION ALL SELECT seq, account_id, 'revenue', 'paid_available', paid FROM entry WHERE kind = 8;
CREATE VIEW posting AS
  SELECT seq, account_id, source AS book, amount AS debit, 0 AS credit FROM move WHERE amount <> 0
  UNION ALL SELECT seq, account_id, target, 0, amount FROM move WHERE amount <> 0;
