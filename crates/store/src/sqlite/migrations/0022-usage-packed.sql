-- Quarters of accounts once more, those of a day in one row (sums/days.rs): for questions by hour about all accounts.
CREATE TABLE usage_day_packed (
  day INTEGER NOT NULL,
  account_id BLOB NOT NULL,
  key_id BLOB NOT NULL,
  model TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  ending INTEGER NOT NULL,
  provider TEXT NOT NULL,
  upstream_model TEXT NOT NULL,
  quarters BLOB NOT NULL
);
CREATE INDEX usage_day_packed_day ON usage_day_packed (day);
-- Days that were folded before are folded again, with these.
INSERT INTO usage_day_touched SELECT DISTINCT quarter / 96, 1 FROM usage_account_sum WHERE width = 24
  ON CONFLICT (day) DO UPDATE SET times = times + 1;
