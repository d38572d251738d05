-- The usage log added up by quarter of an hour; see SQLite. The triggers count, once per statement, so whatever happens to a row of the log
-- happens to its sum, whichever version of the program does it. Names are compared byte by byte, which is much quicker.
CREATE TABLE usage_quarter (
  account_id bytea NOT NULL,
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
  -- Calls that were charged and whose cost nobody knows.
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
  PRIMARY KEY (account_id, quarter, key_id, model, endpoint, ending, provider, upstream_model)
) WITH (fillfactor = 70);
CREATE INDEX usage_quarter_time ON usage_quarter (quarter);
-- The last row of the usage log, in the order of its key, that is in the sums; no row here: all of them are. Those after it are added in steps.
CREATE TABLE usage_backfill (
  one integer PRIMARY KEY CHECK (one = 1),
  account_id bytea NOT NULL,
  call_id bytea NOT NULL
);

-- The quarter of an hour in which an id was made: it begins with 48 bits of milliseconds.
CREATE FUNCTION usage_quarter_of(v_call bytea) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT ((get_byte(v_call, 0)::bigint << 40) + (get_byte(v_call, 1)::bigint << 32) + (get_byte(v_call, 2)::bigint << 24)
    + (get_byte(v_call, 3)::bigint << 16) + (get_byte(v_call, 4)::bigint << 8) + get_byte(v_call, 5)) / 900000
$$;

-- What one call may add to a sum at most, so that no sum can grow out of its column (sums.rs has the same numbers).
CREATE FUNCTION usage_quarter_within(v_amount bigint, v_most bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT least(greatest(coalesce(v_amount, 0), 0), v_most)
$$;

-- Adds the rows that changed to their sums, or takes them away, by the sign it is called with. Whoever changes rows of an account has the
-- lock of that account, so nobody waits for anybody here.
CREATE FUNCTION usage_quarter_count() RETURNS trigger LANGUAGE plpgsql AS $$
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
    v_sign * count(*), v_sign * sum(estimated::integer), v_sign * sum(charge), v_sign * sum(refunded),
    v_sign * sum(usage_quarter_within(write_off, 1000000000000000)), v_sign * sum(usage_quarter_within(cost, 1000000000000000)),
    v_sign * sum((charge > 0 AND cost IS NULL)::integer), v_sign * sum(usage_quarter_within(ended_at - at, 1000000000000)),
    v_sign * count(first_byte_ms), v_sign * sum(usage_quarter_within(first_byte_ms, 1000000000000)),
    v_sign * sum(usage_quarter_within(input, 1000000000000)), v_sign * sum(usage_quarter_within(cache_read, 1000000000000)),
    v_sign * sum(usage_quarter_within(cache_write_5m, 1000000000000)), v_sign * sum(usage_quarter_within(cache_write_1h, 1000000000000)),
    v_sign * sum(usage_quarter_within(image_input, 1000000000000)), v_sign * sum(usage_quarter_within(audio_input, 1000000000000)),
    v_sign * sum(usage_quarter_within(output, 1000000000000)), v_sign * sum(usage_quarter_within(reasoning, 1000000000000)),
    v_sign * sum(usage_quarter_within(image_output, 1000000000000)), v_sign * sum(usage_quarter_within(audio_output, 1000000000000)),
    v_sign * sum(usage_quarter_within(calls, 1000000000000)), v_sign * sum(usage_quarter_within(seconds, 1000000000000))
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

CREATE TRIGGER usage_quarter_in AFTER INSERT ON usage REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION usage_quarter_count('1');
CREATE TRIGGER usage_quarter_out AFTER DELETE ON usage REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION usage_quarter_count('-1');
CREATE TRIGGER usage_quarter_was AFTER UPDATE ON usage REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION usage_quarter_count('-1');
CREATE TRIGGER usage_quarter_will AFTER UPDATE ON usage REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION usage_quarter_count('1');
INSERT INTO usage_backfill SELECT 1, '', '' WHERE EXISTS (SELECT 1 FROM usage);
