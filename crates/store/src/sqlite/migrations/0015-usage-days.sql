-- Sums of days that are over, made of usage_quarter by a worker (sums/folded.rs): of the whole house, and of each account and key.
-- Of the whole house, by quarter of an hour (width 1) and by day of UTC (width 96, whose quarter is its first).
CREATE TABLE usage_house (
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
-- As usage_quarter, by day of UTC since 1970.
CREATE TABLE usage_day (
  account_id BLOB NOT NULL,
  day INTEGER NOT NULL,
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
  PRIMARY KEY (account_id, day, key_id, model, endpoint, ending, provider, upstream_model)
) WITHOUT ROWID;
CREATE INDEX usage_day_time ON usage_day (day);
-- Days before this one are in the sums above, but for those that were touched. Whoever changes usage_quarter there touches its day.
CREATE TABLE usage_fold (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  until INTEGER NOT NULL
);
INSERT INTO usage_fold VALUES (1, 0);
-- How often it was touched since it was folded.
CREATE TABLE usage_touched (
  day INTEGER PRIMARY KEY,
  times INTEGER NOT NULL
);
