-- Sums of time that is over, made of usage_quarter by a worker (sums/folded.rs). They take the place of usage_house, usage_day, usage_fold and
-- usage_touched, which only the version before uses: those stay right as long as it runs, and a later migration removes them.
-- Of the whole house, by quarter of an hour, hour and day of UTC: width is how many quarters, and quarter the first of them.
CREATE TABLE usage_house_sum (
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
-- Of each account and key, by six hours (width 24) and by day (width 96). Days begin so many quarters before those of UTC as shift says.
CREATE TABLE usage_account_sum (
  account_id bytea NOT NULL,
  width smallint NOT NULL,
  shift smallint NOT NULL,
  quarter bigint NOT NULL,
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
  PRIMARY KEY (account_id, width, shift, quarter, key_id, model, endpoint, ending, provider, upstream_model)
);
CREATE INDEX usage_account_sum_time ON usage_account_sum (width, shift, quarter);
-- Quarters before this one are in the sums above, but for those of days that were touched. Whoever changes the log there touches its day. Ids of
-- calls before that quarter are smaller than first_call.
CREATE TABLE usage_folded (
  one integer PRIMARY KEY CHECK (one = 1),
  until bigint NOT NULL,
  first_call bytea NOT NULL
);
INSERT INTO usage_folded VALUES (1, 0, '');
-- A row for each time that it was touched, so that nobody waits for anybody. Folding the day removes those that it has seen.
CREATE TABLE usage_day_touched (
  day bigint NOT NULL
);
CREATE INDEX usage_day_touched_day ON usage_day_touched (day);
-- Days of other zones that are in the sums above: those that begin from since to before until. They are there because somebody asked for them.
CREATE TABLE usage_zone (
  shift smallint PRIMARY KEY CHECK (shift > 0 AND shift < 96),
  since bigint NOT NULL,
  until bigint NOT NULL,
  asked_at bigint NOT NULL
);

-- Once per statement, whichever version of the program writes. Whoever writes the log has a lock on it, and until is moved only while nobody does.
CREATE OR REPLACE FUNCTION usage_touch() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_first bytea;
  v_before bytea;
BEGIN
  SELECT f.first_call, b.first_call INTO v_first, v_before FROM usage_folded f, usage_fold b WHERE f.one = 1 AND b.one = 1;
  -- Most statements are about calls of this block, and no more than this is asked of them.
  IF NOT EXISTS (SELECT 1 FROM changed WHERE call_id < greatest(v_first, v_before)) THEN
    RETURN NULL;
  END IF;
  INSERT INTO usage_day_touched SELECT DISTINCT usage_quarter_of(call_id) / 96 FROM changed WHERE call_id < v_first;
  INSERT INTO usage_touched SELECT DISTINCT usage_quarter_of(call_id) / 96 FROM changed WHERE call_id < v_before;
  RETURN NULL;
END $$;

-- Adds up as columns do: sum() makes numbers without bounds, which take longer.
CREATE AGGREGATE usage_plus(bigint) (SFUNC = int8pl, STYPE = bigint);
-- As in 0008, with that.
CREATE OR REPLACE FUNCTION usage_quarter_count() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_sign bigint := TG_ARGV[0]::bigint;
  v_until usage_backfill%ROWTYPE;
BEGIN
  SELECT * INTO v_until FROM usage_backfill WHERE one = 1;
  INSERT INTO usage_quarter AS q (account_id, quarter, key_id, model, endpoint, ending, provider, upstream_model,
    requests, estimated, charge, refunded, write_off, cost, cost_unknown, duration_ms, first_bytes, first_byte_ms,
    input, cache_read, cache_write_5m, cache_write_1h, image_input, audio_input, output, reasoning, image_output, audio_output,
    calls, seconds)
  SELECT account_id, usage_quarter_of(call_id), key_id, model, endpoint, ending, coalesce(provider, ''), coalesce(upstream_model, ''),
    v_sign * count(*), v_sign * sum(estimated::integer), v_sign * usage_plus(charge), v_sign * usage_plus(refunded),
    v_sign * usage_plus(usage_quarter_within(write_off, 1000000000000000)), v_sign * usage_plus(usage_quarter_within(cost, 1000000000000000)),
    v_sign * sum((charge > 0 AND cost IS NULL)::integer), v_sign * usage_plus(usage_quarter_within(ended_at - at, 1000000000000)),
    v_sign * count(first_byte_ms), v_sign * usage_plus(usage_quarter_within(first_byte_ms, 1000000000000)),
    v_sign * usage_plus(usage_quarter_within(input, 1000000000000)), v_sign * usage_plus(usage_quarter_within(cache_read, 1000000000000)),
    v_sign * usage_plus(usage_quarter_within(cache_write_5m, 1000000000000)), v_sign * usage_plus(usage_quarter_within(cache_write_1h, 1000000000000)),
    v_sign * usage_plus(usage_quarter_within(image_input, 1000000000000)), v_sign * usage_plus(usage_quarter_within(audio_input, 1000000000000)),
    v_sign * usage_plus(usage_quarter_within(output, 1000000000000)), v_sign * usage_plus(usage_quarter_within(reasoning, 1000000000000)),
    v_sign * usage_plus(usage_quarter_within(image_output, 1000000000000)), v_sign * usage_plus(usage_quarter_within(audio_output, 1000000000000)),
    v_sign * usage_plus(usage_quarter_within(calls, 1000000000000)), v_sign * usage_plus(usage_quarter_within(seconds, 1000000000000))
  FROM changed WHERE v_until.call_id IS NULL OR (account_id, call_id) <= (v_until.account_id, v_until.call_id)
  GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
  ON CONFLICT (account_id, quarter, key_id, model, endpoint, ending, provider, upstream_model) DO UPDATE SET
    requests = q.requests + excluded.requests, estimated = q.estimated + excluded.estimated, charge = q.charge + excluded.charge,
    refunded = q.refunded + excluded.refunded, write_off = q.write_off + excluded.write_off, cost = q.cost + excluded.cost,
    cost_unknown = q.cost_unknown + excluded.cost_unknown, duration_ms = q.duration_ms + excluded.duration_ms,
    first_bytes = q.first_bytes + excluded.first_bytes, first_byte_ms = q.first_byte_ms + excluded.first_byte_ms,
    input = q.input + excluded.input, cache_read = q.cache_read + excluded.cache_read,
    cache_write_5m = q.cache_write_5m + excluded.cache_write_5m, cache_write_1h = q.cache_write_1h + excluded.cache_write_1h,
    image_input = q.image_input + excluded.image_input, audio_input = q.audio_input + excluded.audio_input,
    output = q.output + excluded.output, reasoning = q.reasoning + excluded.reasoning,
    image_output = q.image_output + excluded.image_output, audio_output = q.audio_output + excluded.audio_output,
    calls = q.calls + excluded.calls, seconds = q.seconds + excluded.seconds;
  RETURN NULL;
END $$;
