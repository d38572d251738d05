-- The usage log added up by quarter of an hour, written with each row of it (sums.rs). A quarter is that of the call's id, counted since
-- 1970; without a route, provider and upstream_model are empty.
CREATE TABLE usage_quarter (
  account_id BLOB NOT NULL,
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
  -- Calls that were charged and whose cost nobody knows.
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
  PRIMARY KEY (account_id, quarter, key_id, model, endpoint, ending, provider, upstream_model)
) WITHOUT ROWID;
CREATE INDEX usage_quarter_time ON usage_quarter (quarter);
-- The last row of the usage log, in the order of its key, that is in the sums; no row here: all of them are. Those after it are added in steps.
CREATE TABLE usage_backfill (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  account_id BLOB NOT NULL,
  call_id BLOB NOT NULL
);
INSERT INTO usage_backfill SELECT 1, x'', x'' WHERE EXISTS (SELECT 1 FROM usage);
