-- Adds up as columns do: beyond their bounds it fails. sum() makes numbers without bounds, which take as long again as everything else.
CREATE OR REPLACE AGGREGATE tollgate_sum(bigint) (SFUNC = int8pl, STYPE = bigint);
-- Adds the next rows of the usage log to their sums, those from before there were sums. Nobody changes the log meanwhile; a step is short.
-- Answers whether there is more to do. The words are those of usage_quarter_count in migrations/0008-usage-sums.sql.
CREATE OR REPLACE FUNCTION tollgate_fill_sums(v_most bigint) RETURNS boolean LANGUAGE plpgsql SET lock_timeout = '2s' AS $$
DECLARE
  v_from usage_backfill%ROWTYPE;
  v_last usage_backfill%ROWTYPE;
BEGIN
  PERFORM 1 FROM usage_backfill WHERE one = 1;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  -- Sums are written here and by usage_merge, never at the same time ("tollsums" as a number).
  PERFORM pg_advisory_xact_lock(8390043843863866739);
  -- Whoever writes the log has read how far the sums are, and no more than that may be added here.
  LOCK TABLE usage IN SHARE ROW EXCLUSIVE MODE;
  SELECT * INTO v_from FROM usage_backfill WHERE one = 1;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  SELECT 1, u.account_id, u.call_id INTO v_last FROM usage u WHERE (u.account_id, u.call_id) > (v_from.account_id, v_from.call_id)
    ORDER BY u.account_id, u.call_id OFFSET v_most - 1 LIMIT 1;
  INSERT INTO usage_quarter AS q (account_id, quarter, key_id, model, endpoint, ending, provider, upstream_model,
    requests, estimated, charge, refunded, write_off, cost, cost_unknown, duration_ms, first_bytes, first_byte_ms,
    input, cache_read, cache_write_5m, cache_write_1h, image_input, audio_input, output, reasoning, image_output, audio_output,
    calls, seconds)
  SELECT account_id, usage_quarter_of(call_id), key_id, model, endpoint, ending, coalesce(provider, ''), coalesce(upstream_model, ''),
    count(*), sum(estimated::integer), sum(charge), sum(refunded),
    sum(usage_quarter_within(write_off, 1000000000000000)), sum(usage_quarter_within(cost, 1000000000000000)),
    sum((charge > 0 AND cost IS NULL)::integer), sum(usage_quarter_within(ended_at - at, 1000000000000)),
    count(first_byte_ms), sum(usage_quarter_within(first_byte_ms, 1000000000000)),
    sum(usage_quarter_within(input, 1000000000000)), sum(usage_quarter_within(cache_read, 1000000000000)),
    sum(usage_quarter_within(cache_write_5m, 1000000000000)), sum(usage_quarter_within(cache_write_1h, 1000000000000)),
    sum(usage_quarter_within(image_input, 1000000000000)), sum(usage_quarter_within(audio_input, 1000000000000)),
    sum(usage_quarter_within(output, 1000000000000)), sum(usage_quarter_within(reasoning, 1000000000000)),
    sum(usage_quarter_within(image_output, 1000000000000)), sum(usage_quarter_within(audio_output, 1000000000000)),
    sum(usage_quarter_within(calls, 1000000000000)), sum(usage_quarter_within(seconds, 1000000000000))
  FROM usage u WHERE (u.account_id, u.call_id) > (v_from.account_id, v_from.call_id)
    AND (v_last.call_id IS NULL OR (u.account_id, u.call_id) <= (v_last.account_id, v_last.call_id))
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
  IF v_last.call_id IS NULL THEN
    DELETE FROM usage_backfill;
    RETURN false;
  END IF;
  UPDATE usage_backfill SET account_id = v_last.account_id, call_id = v_last.call_id;
  RETURN true;
END $$;
