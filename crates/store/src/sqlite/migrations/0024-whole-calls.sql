-- A call that began and ended within one group of the writer is one entry: the one that ends it (kinds 1 to 3), with what its hold
-- would have said. `expires_at` tells it from the end of a hold that has its own entry. Such an entry moves money both ways.
DROP VIEW posting;
DROP VIEW move;
CREATE VIEW move AS
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
CREATE VIEW posting AS
  SELECT seq, account_id, source AS book, amount AS debit, 0 AS credit FROM move WHERE amount <> 0
  UNION ALL SELECT seq, account_id, target, 0, amount FROM move WHERE amount <> 0;
