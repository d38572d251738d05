-- What calls add to sums, a row for each call, until it is merged into usage_quarter. It is a child of that table: whoever reads usage_quarter,
-- of whichever version, reads both from one snapshot, so a sum is whole at any moment. No index: there are never many rows.
CREATE TABLE usage_unmerged () INHERITS (usage_quarter) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 8000);

-- Brings into usage_quarter what waits, each sum once, for who knows nothing of that; postgres/merge.rs does the same in two steps of one
-- snapshot, for half of it. One at a time, so nobody waits for anybody. Answers how many sums that were.
CREATE FUNCTION usage_merge() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_count bigint;
BEGIN
  -- "tollsums" as a number.
  IF NOT pg_try_advisory_xact_lock(8390043843863866739) THEN
    RETURN 0;
  END IF;
  WITH gone AS (DELETE FROM usage_unmerged RETURNING *)
  INSERT INTO usage_quarter AS q (account_id, quarter, key_id, model, endpoint, ending, provider, upstream_model,
    requests, estimated, charge, refunded, write_off, cost, cost_unknown, duration_ms, first_bytes, first_byte_ms,
    input, cache_read, cache_write_5m, cache_write_1h, image_input, audio_input, output, reasoning, image_output, audio_output,
    calls, seconds)
  SELECT account_id, quarter, key_id, model, endpoint, ending, provider, upstream_model,
    usage_plus(requests), usage_plus(estimated), usage_plus(charge), usage_plus(refunded), usage_plus(write_off), usage_plus(cost),
    usage_plus(cost_unknown), usage_plus(duration_ms), usage_plus(first_bytes), usage_plus(first_byte_ms),
    usage_plus(input), usage_plus(cache_read), usage_plus(cache_write_5m), usage_plus(cache_write_1h), usage_plus(image_input),
    usage_plus(audio_input), usage_plus(output), usage_plus(reasoning), usage_plus(image_output), usage_plus(audio_output),
    usage_plus(calls), usage_plus(seconds)
  FROM gone GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
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
  GET DIAGNOSTICS v_count = ROW_COUNT;
  RETURN v_count;
END $$;

-- As in 0008, but what it adds waits to be merged. Most counters of a call are zero, and cost no more than to see that. Sessions that say so are of who merges now and then; for others it is done here, so that
-- not too much ever waits.
CREATE OR REPLACE FUNCTION usage_quarter_count() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_sign bigint := TG_ARGV[0]::bigint;
  v_until usage_backfill%ROWTYPE;
BEGIN
  SELECT * INTO v_until FROM usage_backfill WHERE one = 1;
  INSERT INTO usage_unmerged (account_id, quarter, key_id, model, endpoint, ending, provider, upstream_model,
    requests, estimated, charge, refunded, write_off, cost, cost_unknown, duration_ms, first_bytes, first_byte_ms,
    input, cache_read, cache_write_5m, cache_write_1h, image_input, audio_input, output, reasoning, image_output, audio_output,
    calls, seconds)
  SELECT account_id, usage_quarter_of(call_id), key_id, model, endpoint, ending, coalesce(provider, ''), coalesce(upstream_model, ''),
    v_sign, CASE WHEN estimated THEN v_sign ELSE 0 END, v_sign * charge, v_sign * refunded,
    CASE WHEN write_off > 0 THEN v_sign * least(write_off, 1000000000000000) ELSE 0 END, CASE WHEN cost > 0 THEN v_sign * least(cost, 1000000000000000) ELSE 0 END,
    CASE WHEN charge > 0 AND cost IS NULL THEN v_sign ELSE 0 END, CASE WHEN ended_at - at > 0 THEN v_sign * least(ended_at - at, 1000000000000) ELSE 0 END,
    CASE WHEN first_byte_ms IS NOT NULL THEN v_sign ELSE 0 END, CASE WHEN first_byte_ms > 0 THEN v_sign * least(first_byte_ms, 1000000000000) ELSE 0 END,
    CASE WHEN input > 0 THEN v_sign * least(input, 1000000000000) ELSE 0 END, CASE WHEN cache_read > 0 THEN v_sign * least(cache_read, 1000000000000) ELSE 0 END,
    CASE WHEN cache_write_5m > 0 THEN v_sign * least(cache_write_5m, 1000000000000) ELSE 0 END, CASE WHEN cache_write_1h > 0 THEN v_sign * least(cache_write_1h, 1000000000000) ELSE 0 END,
    CASE WHEN image_input > 0 THEN v_sign * least(image_input, 1000000000000) ELSE 0 END, CASE WHEN audio_input > 0 THEN v_sign * least(audio_input, 1000000000000) ELSE 0 END,
    CASE WHEN output > 0 THEN v_sign * least(output, 1000000000000) ELSE 0 END, CASE WHEN reasoning > 0 THEN v_sign * least(reasoning, 1000000000000) ELSE 0 END,
    CASE WHEN image_output > 0 THEN v_sign * least(image_output, 1000000000000) ELSE 0 END, CASE WHEN audio_output > 0 THEN v_sign * least(audio_output, 1000000000000) ELSE 0 END,
    CASE WHEN calls > 0 THEN v_sign * least(calls, 1000000000000) ELSE 0 END, CASE WHEN seconds > 0 THEN v_sign * least(seconds, 1000000000000) ELSE 0 END
  FROM changed WHERE v_until.call_id IS NULL OR (account_id, call_id) <= (v_until.account_id, v_until.call_id);
  IF current_setting('tollgate.merges', true) IS DISTINCT FROM 'on'
    AND (SELECT count(*) FROM (SELECT 1 FROM usage_unmerged LIMIT 4001) n) > 4000 THEN
    PERFORM usage_merge();
  END IF;
  RETURN NULL;
END $$;
