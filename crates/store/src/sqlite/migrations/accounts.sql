-- Limits by day and month, trial credit that expires, and the entries people ask about.
-- Days are counted from 1970, months from the year 0, in UTC. What was spent before this migration does not count in them.
ALTER TABLE account ADD COLUMN day_limit INTEGER;
ALTER TABLE account ADD COLUMN month_limit INTEGER;
ALTER TABLE account ADD COLUMN day INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN day_used INTEGER NOT NULL DEFAULT 0 CHECK (day_used >= 0);
ALTER TABLE account ADD COLUMN month INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN month_used INTEGER NOT NULL DEFAULT 0 CHECK (month_used >= 0);
ALTER TABLE key ADD COLUMN day_limit INTEGER;
ALTER TABLE key ADD COLUMN month_limit INTEGER;
ALTER TABLE key ADD COLUMN day INTEGER NOT NULL DEFAULT 0;
ALTER TABLE key ADD COLUMN day_used INTEGER NOT NULL DEFAULT 0 CHECK (day_used >= 0);
ALTER TABLE key ADD COLUMN month INTEGER NOT NULL DEFAULT 0;
ALTER TABLE key ADD COLUMN month_used INTEGER NOT NULL DEFAULT 0 CHECK (month_used >= 0);
INSERT INTO meta (name, value) SELECT 'limits_from', coalesce(max(seq), 0) + 1 FROM entry;

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
-- How much of the trial part of an entry comes from which of them: `credit:amount` pairs.
ALTER TABLE entry ADD COLUMN lots TEXT;

CREATE INDEX entry_event ON entry (account_id, seq) WHERE kind BETWEEN 6 AND 9;

-- Entries as moves between books, now with the expiry of trial credit: kind 9, whose op_id begins as that of the credit.
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
  SELECT seq, account_id, source AS book, amount AS debit, 0 AS credit FROM move WHERE amount <> 0
  UNION ALL SELECT seq, account_id, target, 0, amount FROM move WHERE amount <> 0;
