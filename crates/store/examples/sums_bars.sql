-- One day of calls: :calls of them on day :day (since 1970), of 500 accounts. Few accounts make most of the calls. An account uses two of twenty
-- models; a tenth of the accounts have a second key, a tenth a second route, and one call in fifty does not end well.
INSERT INTO usage (account_id, call_id, key_id, at, ended_at, endpoint, model, provider, upstream_model, ending, reason, status,
  input, cache_read, cache_write_5m, cache_write_1h, image_input, audio_input, output, reasoning, image_output, audio_output, calls, seconds,
  estimated, hold, charge, refunded, write_off, attempts, first_byte_ms, cost)
SELECT decode(md5('account' || account), 'hex'), decode(lpad(to_hex(at), 12, '0') || substr(md5(at || '-' || n), 1, 20), 'hex'),
  decode(md5('key' || account || '-' || key), 'hex'), at, at + 900 + n % 4000, '/v1/chat/completions', 'model-' || model, provider,
  'upstream-' || model, ending, CASE ending WHEN 0 THEN '' ELSE 'gone' END, 200,
  800 + n % 3000, n % 700, 0, 0, 0, 0, 150 + n % 900, n % 50, 0, 0, 0, 0, false, 5000000, charge, 0, 0, 1, 200 + n % 300, charge / 2
FROM (SELECT n, :day * 86400000 + n::bigint * 86400000 / :calls AS at, account, CASE WHEN account % 10 = 0 AND r2 > 0.8 THEN 1 ELSE 0 END AS key,
    (account + floor(2 * r3 ^ 2)::integer) % 20 AS model,
    CASE WHEN account % 10 = 1 AND r4 > 0.9 THEN 'second' ELSE 'first' END AS provider,
    CASE WHEN r4 < 0.02 THEN 1 ELSE 0 END AS ending, 100000 + n % 900000 AS charge
  FROM (SELECT n, floor(500 * random() ^ 2)::integer AS account, random() AS r2, random() AS r3, random() AS r4
    FROM generate_series(0, :calls - 1) n) AS drawn) AS made;
