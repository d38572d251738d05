-- As on SQLite, where a call that began and ended within one group is one entry with an `expires_at` (kinds 1 to 3). Here groups
-- decide in the database, and every hold has its own entry: the view is the same, so that both are read alike.
CREATE OR REPLACE VIEW move AS
  SELECT seq, account_id, 'trial_available' AS source, 'trial_held' AS target, trial AS amount FROM entry
    WHERE kind IN (0, 4) OR kind IN (1, 2, 3) AND expires_at IS NOT NULL
  UNION ALL SELECT seq, account_id, 'paid_available', 'paid_held', paid FROM entry
    WHERE kind IN (0, 4) OR kind IN (1, 2, 3) AND expires_at IS NOT NULL
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
