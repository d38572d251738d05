-- Sums of days that are over, made of usage_quarter by a worker (sums/folded.rs): of the whole house, and of each account and key.
-- Of the whole house, by quarter of an hour (width 1) and by day of UTC (width 96, whose quarter is its first).
CREATE TABLE usage_house (
  width smallint NOT NULL,
  quarter bigint NOT NULL,
  model text COLLATE "C" NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  ending smallint NOT NULL,
  provider text COLLATE "C" NOT NULL,
  upstream_model text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  estimated bigint NOT NULL,
  charge bigint NOT NULL,
  refunded bigint NOT NULL,
  write_off bigint NOT NULL,
  cost bigint NOT NULL,
  cost_unknown bigint NOT NULL,
  duration_ms bigint NOT NULL,
  first_bytes bigint NOT NULL,
  first_byte_ms bigint NOT NULL,
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
  PRIMARY KEY (width, quarter, model, endpoint, ending, provider, upstream_model)
);
-- As usage_quarter, by day of UTC since 1970.
CREATE TABLE usage_day (
  account_id bytea NOT NULL,
  day bigint NOT NULL,
  key_id bytea NOT NULL,
  model text COLLATE "C" NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  ending smallint NOT NULL,
  provider text COLLATE "C" NOT NULL,
  upstream_model text COLLATE "C" NOT NULL,
  requests bigint NOT NULL,
  estimated bigint NOT NULL,
  charge bigint NOT NULL,
  refunded bigint NOT NULL,
  write_off bigint NOT NULL,
  cost bigint NOT NULL,
  cost_unknown bigint NOT NULL,
  duration_ms bigint NOT NULL,
  first_bytes bigint NOT NULL,
  first_byte_ms bigint NOT NULL,
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
  PRIMARY KEY (account_id, day, key_id, model, endpoint, ending, provider, upstream_model)
);
CREATE INDEX usage_day_time ON usage_day (day);
-- Days before this one are in the sums above, but for those that were touched. Whoever changes the log there touches its day. Ids of calls
-- before that day are smaller than first_call.
CREATE TABLE usage_fold (
  one integer PRIMARY KEY CHECK (one = 1),
  until bigint NOT NULL,
  first_call bytea NOT NULL
);
INSERT INTO usage_fold VALUES (1, 0, '');
-- A row for each time that it was touched, so that nobody waits for anybody. Folding the day removes those that it has seen.
CREATE TABLE usage_touched (
  day bigint NOT NULL
);
CREATE INDEX usage_touched_day ON usage_touched (day);

-- Once per statement, whichever version of the program writes. Whoever writes the log has a lock on it, and until is moved only while nobody does.
CREATE FUNCTION usage_touch() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_first bytea;
BEGIN
  SELECT first_call INTO v_first FROM usage_fold WHERE one = 1;
  IF v_first <> '' THEN
    INSERT INTO usage_touched SELECT DISTINCT usage_quarter_of(call_id) / 96 FROM changed WHERE call_id < v_first;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER usage_touch_in AFTER INSERT ON usage REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION usage_touch();
CREATE TRIGGER usage_touch_out AFTER DELETE ON usage REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION usage_touch();
CREATE TRIGGER usage_touch_was AFTER UPDATE ON usage REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION usage_touch();
