-- Sums of time that is over, made of usage_quarter by a worker (sums/folded.rs), in place of those by day alone.
DROP TABLE usage_house;
DROP TABLE usage_day;
DROP TABLE usage_fold;
DROP TABLE usage_touched;
-- Of the whole house, by quarter of an hour, hour and day of UTC: width is how many quarters, and quarter the first of them.
CREATE TABLE usage_house_sum (
  width INTEGER NOT NULL,
  quarter INTEGER NOT NULL,
  model TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  ending INTEGER NOT NULL,
  provider TEXT NOT NULL,
  upstream_model TEXT NOT NULL,
  requests INTEGER NOT NULL,
  estimated INTEGER NOT NULL,
  charge INTEGER NOT NULL,
  refunded INTEGER NOT NULL,
  write_off INTEGER NOT NULL,
  cost INTEGER NOT NULL,
  cost_unknown INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL,
  first_bytes INTEGER NOT NULL,
  first_byte_ms INTEGER NOT NULL,
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
  PRIMARY KEY (width, quarter, model, endpoint, ending, provider, upstream_model)
) WITHOUT ROWID;
-- Of each account and key, by six hours (width 24) and by day (width 96). Days begin so many quarters before those of UTC as shift says.
CREATE TABLE usage_account_sum (
  account_id BLOB NOT NULL,
  width INTEGER NOT NULL,
  shift INTEGER NOT NULL,
  quarter INTEGER NOT NULL,
  key_id BLOB NOT NULL,
  model TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  ending INTEGER NOT NULL,
  provider TEXT NOT NULL,
  upstream_model TEXT NOT NULL,
  requests INTEGER NOT NULL,
  estimated INTEGER NOT NULL,
  charge INTEGER NOT NULL,
  refunded INTEGER NOT NULL,
  write_off INTEGER NOT NULL,
  cost INTEGER NOT NULL,
  cost_unknown INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL,
  first_bytes INTEGER NOT NULL,
  first_byte_ms INTEGER NOT NULL,
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
  PRIMARY KEY (account_id, width, shift, quarter, key_id, model, endpoint, ending, provider, upstream_model)
) WITHOUT ROWID;
CREATE INDEX usage_account_sum_time ON usage_account_sum (width, shift, quarter);
-- Quarters before this one are in the sums above, but for those of days that were touched. Whoever changes usage_quarter there touches its day.
CREATE TABLE usage_folded (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  until INTEGER NOT NULL
);
INSERT INTO usage_folded VALUES (1, 0);
-- How often it was touched since it was folded.
CREATE TABLE usage_day_touched (
  day INTEGER PRIMARY KEY,
  times INTEGER NOT NULL
);
