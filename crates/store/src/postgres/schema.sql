-- The same records as in SQLite (see there for what the columns mean), plus what several replicas need.
CREATE TABLE account (
  id bytea PRIMARY KEY,
  name text NOT NULL,
  created_at bigint NOT NULL,
  changed_at bigint NOT NULL,
  trial_available bigint NOT NULL DEFAULT 0 CHECK (trial_available >= 0),
  paid_available bigint NOT NULL DEFAULT 0 CHECK (paid_available >= 0),
  trial_held bigint NOT NULL DEFAULT 0 CHECK (trial_held >= 0),
  paid_held bigint NOT NULL DEFAULT 0 CHECK (paid_held >= 0),
  topped_up boolean NOT NULL DEFAULT false,
  groups text NOT NULL DEFAULT '[]',
  closed_at bigint,
  -- Ledger time of the account never goes back, whichever replica writes.
  last_at bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX account_changed ON account (changed_at);

CREATE TABLE key (
  id bytea PRIMARY KEY,
  account_id bytea NOT NULL REFERENCES account (id),
  hash bytea NOT NULL UNIQUE,
  prefix text NOT NULL,
  name text NOT NULL,
  created_at bigint NOT NULL,
  changed_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint,
  models text,
  cidrs text,
  cap bigint,
  spent bigint NOT NULL DEFAULT 0 CHECK (spent >= 0),
  held bigint NOT NULL DEFAULT 0 CHECK (held >= 0)
) WITH (fillfactor = 70);
CREATE INDEX key_account ON key (account_id);
CREATE INDEX key_changed ON key (changed_at);

CREATE TABLE price (
  id bytea PRIMARY KEY,
  json text NOT NULL
);

CREATE TABLE entry (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  op_id bytea NOT NULL UNIQUE,
  kind smallint NOT NULL,
  account_id bytea NOT NULL,
  key_id bytea,
  trial bigint NOT NULL,
  paid bigint NOT NULL,
  take_trial bigint NOT NULL DEFAULT 0,
  take_paid bigint NOT NULL DEFAULT 0,
  at bigint NOT NULL,
  price_id bytea,
  model text,
  endpoint text,
  expires_at bigint,
  paid_only boolean,
  replica bytea,
  reference text,
  actor text,
  reason text,
  call_id bytea GENERATED ALWAYS AS (CASE WHEN kind IN (6, 7) THEN NULL ELSE substring(op_id FROM 1 FOR 16) END) STORED,
  CHECK (kind = 7 OR (trial >= 0 AND paid >= 0)),
  CHECK (take_trial BETWEEN 0 AND greatest(trial, 0) AND take_paid BETWEEN 0 AND greatest(paid, 0))
);
CREATE FUNCTION tollgate_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$;
CREATE TRIGGER entry_append_only BEFORE UPDATE OR DELETE ON entry FOR EACH ROW EXECUTE FUNCTION tollgate_append_only();

CREATE TABLE usage (
  account_id bytea NOT NULL,
  call_id bytea NOT NULL,
  key_id bytea NOT NULL,
  at bigint NOT NULL,
  ended_at bigint NOT NULL,
  endpoint text NOT NULL,
  model text NOT NULL,
  provider text,
  upstream_model text,
  ending smallint NOT NULL,
  reason text NOT NULL,
  status integer NOT NULL,
  input bigint NOT NULL,
  cache_read bigint NOT NULL,
  cache_write_5m bigint NOT NULL,
  cache_write_1h bigint NOT NULL,
  image_input bigint NOT NULL,
  audio_input bigint NOT NULL,
  output bigint NOT NULL,
  reasoning bigint NOT NULL,
  image_output bigint NOT NULL,
  audio_output bigint NOT NULL,
  calls bigint NOT NULL,
  seconds bigint NOT NULL,
  estimated boolean NOT NULL,
  hold bigint NOT NULL,
  charge bigint NOT NULL,
  refunded bigint NOT NULL,
  write_off bigint NOT NULL,
  price_id bytea,
  raw_usage text,
  attempts bigint NOT NULL,
  first_byte_ms bigint,
  tier text,
  PRIMARY KEY (account_id, call_id)
);
CREATE INDEX usage_call ON usage (call_id);

CREATE TABLE idem (
  account_id bytea NOT NULL,
  key_hash bytea NOT NULL,
  fingerprint bytea NOT NULL,
  call_id bytea NOT NULL,
  at bigint NOT NULL,
  done smallint NOT NULL DEFAULT 0,
  status integer,
  content_type text,
  reply bytea,
  PRIMARY KEY (account_id, key_hash)
);
CREATE INDEX idem_at ON idem (at);

-- Holds without a terminal entry, so that any replica can resolve those of a dead one.
CREATE TABLE open_hold (
  call_id bytea PRIMARY KEY,
  account_id bytea NOT NULL,
  key_id bytea NOT NULL,
  trial bigint NOT NULL,
  paid bigint NOT NULL,
  paid_only boolean NOT NULL,
  at bigint NOT NULL,
  expires_at bigint NOT NULL,
  price_id bytea NOT NULL,
  model text NOT NULL,
  endpoint text NOT NULL,
  key_hash bytea,
  replica bytea NOT NULL
);
CREATE INDEX open_hold_expires ON open_hold (expires_at);
CREATE INDEX open_hold_replica ON open_hold (replica);

CREATE TABLE replica (
  id bytea PRIMARY KEY,
  beat_at bigint NOT NULL
);

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
  SELECT seq, account_id, source AS book, amount AS debit, 0::bigint AS credit FROM move WHERE amount <> 0
  UNION ALL SELECT seq, account_id, target, 0, amount FROM move WHERE amount <> 0;

-- What an operation of a group answers; see functions.sql.
CREATE TYPE tollgate_outcome AS (
  outcome text, x bigint, y bigint, call bytea, status integer, content_type text, reply bytea
);
