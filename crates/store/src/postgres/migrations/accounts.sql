-- The same as in SQLite (see there for what the columns mean), plus what open holds must remember.
ALTER TABLE account ADD COLUMN day_limit bigint;
ALTER TABLE account ADD COLUMN month_limit bigint;
ALTER TABLE account ADD COLUMN day bigint NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN day_used bigint NOT NULL DEFAULT 0 CHECK (day_used >= 0);
ALTER TABLE account ADD COLUMN month bigint NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN month_used bigint NOT NULL DEFAULT 0 CHECK (month_used >= 0);
ALTER TABLE key ADD COLUMN day_limit bigint;
ALTER TABLE key ADD COLUMN month_limit bigint;
ALTER TABLE key ADD COLUMN day bigint NOT NULL DEFAULT 0;
ALTER TABLE key ADD COLUMN day_used bigint NOT NULL DEFAULT 0 CHECK (day_used >= 0);
ALTER TABLE key ADD COLUMN month bigint NOT NULL DEFAULT 0;
ALTER TABLE key ADD COLUMN month_used bigint NOT NULL DEFAULT 0 CHECK (month_used >= 0);
CREATE TABLE meta (
  name text PRIMARY KEY,
  value bigint NOT NULL
);
INSERT INTO meta (name, value) SELECT 'limits_from', coalesce(max(seq), 0) + 1 FROM entry;

CREATE TABLE trial_lot (
  account_id bytea NOT NULL,
  credit bytea NOT NULL,
  reference text NOT NULL,
  expires_at bigint NOT NULL,
  free bigint NOT NULL CHECK (free >= 0),
  held bigint NOT NULL DEFAULT 0 CHECK (held >= 0),
  lapses integer NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, credit)
);
CREATE INDEX trial_lot_due ON trial_lot (expires_at) WHERE free > 0;
ALTER TABLE entry ADD COLUMN lots text;

CREATE INDEX entry_event ON entry (account_id, seq) WHERE kind BETWEEN 6 AND 9;

-- From which lots a hold has its trial money, and what of it counts in which day and month.
ALTER TABLE open_hold ADD COLUMN lots text;
ALTER TABLE open_hold ADD COLUMN day bigint NOT NULL DEFAULT 0;
ALTER TABLE open_hold ADD COLUMN day_used bigint NOT NULL DEFAULT 0;
ALTER TABLE open_hold ADD COLUMN month bigint NOT NULL DEFAULT 0;
ALTER TABLE open_hold ADD COLUMN month_used bigint NOT NULL DEFAULT 0;

DROP VIEW posting;
DROP VIEW move;
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
CREATE VIEW posting AS
  SELECT seq, account_id, source AS book, amount AS debit, 0::bigint AS credit FROM move WHERE amount <> 0
  UNION ALL SELECT seq, account_id, target, 0, amount FROM move WHERE amount <> 0;

-- They have another form now; the others are replaced in place.
DROP FUNCTION IF EXISTS tollgate_reserve(account, key, bigint, boolean);
DROP FUNCTION IF EXISTS tollgate_credit(bytea, smallint, bytea, bytea, boolean, bigint, bigint, text, text, text);
