-- The ledger's file, whole. Later changes are numbered files beside this one (migrations/0002-….sql); see migration.rs.
--
-- Money is integer nano-USD, time milliseconds since 1970. Ids are 16 bytes, time first. Days are counted from 1970, months from the
-- year 0, in UTC.

-- The migrations that have run: 1 is this file.
CREATE TABLE migration (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  -- Of its words; comments and spacing do not count.
  fingerprint TEXT NOT NULL
);

-- Numbers that the store keeps by name: the clock, the mark of open holds.
CREATE TABLE meta (
  name TEXT PRIMARY KEY NOT NULL,
  value INTEGER NOT NULL
) WITHOUT ROWID;

-- ── Accounts and keys ────────────────────

CREATE TABLE account (
  id BLOB PRIMARY KEY NOT NULL,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  -- Two pots, trial and paid, each with an available and a held part.
  trial_available INTEGER NOT NULL DEFAULT 0 CHECK (trial_available >= 0),
  paid_available INTEGER NOT NULL DEFAULT 0 CHECK (paid_available >= 0),
  trial_held INTEGER NOT NULL DEFAULT 0 CHECK (trial_held >= 0),
  paid_held INTEGER NOT NULL DEFAULT 0 CHECK (paid_held >= 0),
  topped_up INTEGER NOT NULL DEFAULT 0,
  groups TEXT NOT NULL DEFAULT '[]',
  closed_at INTEGER,
  -- Limits, and what was used of them in the day and the month that are named here.
  day_limit INTEGER,
  month_limit INTEGER,
  day INTEGER NOT NULL DEFAULT 0,
  day_used INTEGER NOT NULL DEFAULT 0 CHECK (day_used >= 0),
  month INTEGER NOT NULL DEFAULT 0,
  month_used INTEGER NOT NULL DEFAULT 0 CHECK (month_used >= 0),
  -- The end of the account's hash chain (chain.rs).
  links INTEGER NOT NULL DEFAULT 0,
  head BLOB,
  -- Where the account wants to hear of all its tasks.
  webhook_url TEXT
) WITHOUT ROWID;
CREATE INDEX account_changed ON account (changed_at);

-- API keys. The secret itself is never stored.
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
  -- The limit for all time, and what counts against it.
  cap INTEGER,
  spent INTEGER NOT NULL DEFAULT 0 CHECK (spent >= 0),
  held INTEGER NOT NULL DEFAULT 0 CHECK (held >= 0),
  day_limit INTEGER,
  month_limit INTEGER,
  day INTEGER NOT NULL DEFAULT 0,
  day_used INTEGER NOT NULL DEFAULT 0 CHECK (day_used >= 0),
  month INTEGER NOT NULL DEFAULT 0,
  month_used INTEGER NOT NULL DEFAULT 0 CHECK (month_used >= 0)
) WITHOUT ROWID;
CREATE INDEX key_account ON key (account_id);
CREATE INDEX key_changed ON key (changed_at);

-- Credits with an end. `credit` is the first half of the hash of the credit's id, as in its entry; `lapses` counts the
-- entries that took a part of it away.
CREATE TABLE trial_lot (
  account_id BLOB NOT NULL,
  credit BLOB NOT NULL,
  reference TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  free INTEGER NOT NULL CHECK (free >= 0),
  held INTEGER NOT NULL DEFAULT 0 CHECK (held >= 0),
  lapses INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, credit)
) WITHOUT ROWID;
CREATE INDEX trial_lot_due ON trial_lot (expires_at) WHERE free > 0;

-- ── The ledger ────────────────────

-- Prices by the hash of their text: those that were ever held or charged for.
CREATE TABLE price (
  id BLOB PRIMARY KEY NOT NULL,
  json TEXT NOT NULL
) WITHOUT ROWID;

-- Append-only. `op_id` = call id and a class byte; settle, void and expire share the class, so that the
-- unique index is the rule "one terminal entry per hold".
-- kind: 0 hold, 1 settle, 2 void, 3 expire, 4 extend, 5 write-off, 6 top-up, 7 adjust, 8 refund, 9 lapse (whose op_id begins as that of
-- the credit), 10 reopen.
CREATE TABLE entry (
  -- One thread writes, so this is also the order of every account's chain.
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
  -- How much of the trial part comes from which lots: `credit:amount` pairs.
  lots TEXT,
  -- The account's hash chain (chain.rs).
  link INTEGER,
  hash BLOB,
  CHECK (kind = 7 OR (trial >= 0 AND paid >= 0)),
  CHECK (take_trial BETWEEN 0 AND max(trial, 0) AND take_paid BETWEEN 0 AND max(paid, 0))
);
CREATE INDEX entry_event ON entry (account_id, seq) WHERE kind BETWEEN 6 AND 9;
CREATE TRIGGER entry_no_update BEFORE UPDATE ON entry BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER entry_no_delete BEFORE DELETE ON entry BEGIN SELECT raise(ABORT, 'the ledger is append-only'); END;

-- Open holds whose entry is before `oldest_open_seq`: a start reads these one by one and the ledger from there on, however long they
-- stay open.
CREATE TABLE old_hold (
  call_id BLOB PRIMARY KEY NOT NULL
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
  UNION ALL SELECT seq, account_id, 'revenue', 'paid_available', paid FROM entry WHERE kind = 8
  UNION ALL SELECT seq, account_id, 'trial_available', 'promotion', trial FROM entry WHERE kind = 9;
-- The same as debit and credit.
CREATE VIEW posting AS
  SELECT seq, account_id, source AS book, amount AS debit, 0 AS credit FROM move WHERE amount <> 0
  UNION ALL SELECT seq, account_id, target, 0, amount FROM move WHERE amount <> 0;

-- ── Calls ────────────────────

-- One row per call, written with its end.
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
  -- Counters.
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
  -- Money.
  hold INTEGER NOT NULL,
  charge INTEGER NOT NULL,
  refunded INTEGER NOT NULL DEFAULT 0,
  write_off INTEGER NOT NULL,
  price_id BLOB,
  -- What the provider reported, word for word.
  raw_usage TEXT,
  attempts INTEGER NOT NULL,
  first_byte_ms INTEGER,
  tier TEXT,
  -- What of a request its provider did not get, because its format has nothing like it: names of fields, by commas.
  dropped TEXT,
  -- Of the row (row_hash.rs). Where a call was ended by an entry, that entry carries it too, as its reference, and has the word.
  hash BLOB,
  -- Uses of tools that ran at the provider, by commas: tool:web_search=3,tool:maps=1. Nothing where none was used.
  tools TEXT,
  PRIMARY KEY (account_id, call_id)
) WITHOUT ROWID;

-- Idempotency keys, with the reply of the call that was done under them.
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

-- How many bytes of replies are stored for the idempotency keys of an account, by the hour (since 1970) in which its calls ended. An hour whose
-- keys are all forgotten goes with them.
CREATE TABLE idem_kept (
  account_id BLOB NOT NULL,
  hour INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  PRIMARY KEY (account_id, hour)
) WITHOUT ROWID;
CREATE INDEX idem_kept_hour ON idem_kept (hour);

-- ── Tasks ────────────────────

-- A task is one call: its id is that of the call, its hold that of the call.
-- state: 0 held, 1 submitting, 2 queued, 3 running, 4 unknown, 5 completed, 6 failed, 7 refused.
CREATE TABLE task (
  call_id BLOB PRIMARY KEY NOT NULL,
  account_id BLOB NOT NULL,
  key_id BLOB NOT NULL,
  endpoint TEXT NOT NULL,
  model TEXT NOT NULL,
  provider TEXT,
  upstream_model TEXT,
  upstream_id TEXT,
  state INTEGER NOT NULL,
  progress INTEGER,
  plan TEXT NOT NULL,
  result TEXT,
  failure_code TEXT,
  failure_message TEXT,
  webhook_url TEXT,
  created_at INTEGER NOT NULL,
  checked_at INTEGER,
  unknown_since INTEGER,
  ended_at INTEGER,
  price_id BLOB NOT NULL,
  hidden INTEGER NOT NULL DEFAULT 0,
  due_at INTEGER NOT NULL,
  -- Where it was sent: the provider's host, and a fingerprint of the key (never the key), so that nobody else is asked for it.
  upstream_host TEXT,
  upstream_key TEXT,
  -- What the provider last said: queued or running; since when it has said nothing but that it has no such task; when it first
  -- said that the result is made. And whether nobody may ask before the task is due.
  heard INTEGER,
  absent_since INTEGER,
  made_since INTEGER,
  quiet INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX task_account ON task (account_id, call_id);
CREATE INDEX task_open ON task (due_at) WHERE state < 5;
-- Whether an entry of a provider's list is a task of ours, and which of ours have no name there.
CREATE INDEX task_upstream ON task (upstream_id) WHERE upstream_id IS NOT NULL;
CREATE INDEX task_nameless ON task (created_at) WHERE upstream_id IS NULL;

-- The names of tasks at their providers, each at one host once, so that no task is ever taken for another's.
CREATE TABLE task_name (
  home TEXT NOT NULL,
  upstream_id TEXT NOT NULL,
  call_id BLOB NOT NULL,
  PRIMARY KEY (home, upstream_id)
) WITHOUT ROWID;

-- Who is still to be notified of the end of a task.
CREATE TABLE webhook (
  call_id BLOB PRIMARY KEY NOT NULL,
  account_id BLOB NOT NULL,
  url TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  fence INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX webhook_due ON webhook (due_at);

-- ── Social data ────────────────────

-- Pauses of a model (a cell of social data is one) or of a provider, by `kind`; `model` is the name of either.
CREATE TABLE social_change (
  seq INTEGER PRIMARY KEY,
  model TEXT NOT NULL,
  paused INTEGER NOT NULL,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL,
  kind TEXT NOT NULL DEFAULT 'model'
);
CREATE INDEX social_change_model ON social_change (model, seq);
CREATE TRIGGER social_change_no_update BEFORE UPDATE ON social_change
  BEGIN SELECT raise(ABORT, 'what was done is not changed'); END;
CREATE TRIGGER social_change_no_delete BEFORE DELETE ON social_change
  BEGIN SELECT raise(ABORT, 'what was done is not changed'); END;

-- Calls and their cost by day. Platform '' is all of them.
CREATE TABLE social_day (
  day INTEGER NOT NULL,
  platform TEXT NOT NULL,
  calls INTEGER NOT NULL,
  cost INTEGER NOT NULL,
  PRIMARY KEY (day, platform)
) WITHOUT ROWID;

-- Calls that found nothing, which cost the operator: what is not asked again for a while, and who asked.
CREATE TABLE social_vain (
  call_id BLOB PRIMARY KEY,
  question BLOB NOT NULL,
  account_id BLOB NOT NULL,
  at INTEGER NOT NULL,
  until INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX social_vain_at ON social_vain (at);

-- ── Operators and secrets ────────────────────

-- Who may use the operator's API. The secret itself is never stored.
CREATE TABLE admin_key (
  id BLOB PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  prefix TEXT NOT NULL,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) WITHOUT ROWID;

-- What operators did besides money (which has its own rows in the ledger) and pauses (social_change); `detail` is what was changed into
-- what.
CREATE TABLE operator_event (
  seq INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  reason TEXT NOT NULL,
  detail TEXT NOT NULL DEFAULT ''
);
CREATE TRIGGER operator_event_no_update BEFORE UPDATE ON operator_event
  BEGIN SELECT raise(ABORT, 'what was done is not changed'); END;
CREATE TRIGGER operator_event_no_delete BEFORE DELETE ON operator_event
  BEGIN SELECT raise(ABORT, 'what was done is not changed'); END;

-- Keys that sign receipts: one has no end and signs, the others only verify. The secret of a key that has ended is erased.
CREATE TABLE receipt_key (
  public BLOB PRIMARY KEY NOT NULL,
  secret BLOB,
  from_at INTEGER NOT NULL,
  until_at INTEGER,
  CHECK ((until_at IS NULL) = (secret IS NOT NULL))
) WITHOUT ROWID;
CREATE UNIQUE INDEX receipt_key_signs ON receipt_key ((1)) WHERE until_at IS NULL;

-- The names of the secrets that sign links and webhooks, which say nothing of the secrets themselves: whoever starts with others, or
-- with none, is reported.
CREATE TABLE signing_secret (
  name TEXT PRIMARY KEY,
  seen_at INTEGER NOT NULL
) WITHOUT ROWID;

-- ── Bounds ────────────────────

-- A sum above 2^63 would go on in floating point, and the books with it. Amounts are bounded where they enter (bounds.rs); should one come
-- by all the same, the operation is refused and not the money bent.
CREATE TRIGGER account_whole BEFORE UPDATE ON account
  WHEN typeof(new.trial_available) <> 'integer' OR typeof(new.paid_available) <> 'integer' OR typeof(new.trial_held) <> 'integer'
    OR typeof(new.paid_held) <> 'integer' OR typeof(new.day_used) <> 'integer' OR typeof(new.month_used) <> 'integer'
  BEGIN SELECT raise(ABORT, 'an amount is too large'); END;
CREATE TRIGGER key_whole BEFORE UPDATE ON key
  WHEN typeof(new.spent) <> 'integer' OR typeof(new.held) <> 'integer' OR typeof(new.day_used) <> 'integer'
    OR typeof(new.month_used) <> 'integer'
  BEGIN SELECT raise(ABORT, 'an amount is too large'); END;
CREATE TRIGGER trial_lot_whole BEFORE UPDATE ON trial_lot
  WHEN typeof(new.free) <> 'integer' OR typeof(new.held) <> 'integer'
  BEGIN SELECT raise(ABORT, 'an amount is too large'); END;
CREATE TRIGGER usage_whole BEFORE UPDATE ON usage WHEN typeof(new.refunded) <> 'integer'
  BEGIN SELECT raise(ABORT, 'an amount is too large'); END;
