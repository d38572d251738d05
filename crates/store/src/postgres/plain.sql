-- The plain operations of a large group, all at once. Nothing about one of them depends on another, so sums take the place of
-- steps and their order among the others does not matter. What is not plain, and all holds of an account whose money does not
-- suffice for their sum, is left to the functions of functions.sql, which say what an operation means; these only say it faster.
-- Both answer the places of the operations they have done, counted from 1. Joins go by index, whatever the statistics say: the
-- tables of running calls grow and shrink too fast for them.

-- Closes of holds of this replica that cover their charge, all of which the customer pays, and that have no idempotency key, no task and no credit that expires.
CREATE OR REPLACE FUNCTION tollgate_close_plain(ops jsonb) RETURNS SETOF bigint LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  RETURN QUERY
  WITH asked AS MATERIALIZED (
    SELECT n, op->'row' AS row, (op->>'call')::bytea AS call, (op->>'account')::bytea AS account, (op->>'at')::bigint AS at,
      (op->>'replica')::bytea AS replica, greatest((op->>'charge')::bigint, 0) AS charge,
      count(*) OVER (PARTITION BY op->>'call') AS times
    FROM jsonb_array_elements(ops) WITH ORDINALITY AS o (op, n)
    WHERE op->>'kind' = 'close' AND NOT op ?| ARRAY['task', 'again', 'most']
  ), plain AS MATERIALIZED (
    SELECT q.n, q.call, q.account, q.replica, q.charge, h.key_id AS key, h.trial, h.paid, h.price_id,
      tollgate_row_hash(q.row, h.key_id, h.price_id, h.trial + h.paid, q.charge, 0) AS reference,
      least(q.charge, h.trial) AS take_trial, q.charge - least(q.charge, h.trial) AS take_paid, q.row,
      CASE WHEN q.charge > 0 THEN 1 WHEN q.row->>'ending' = '4' THEN 3 ELSE 2 END AS kind,
      greatest(a.last_at, max(q.at) OVER (PARTITION BY a.id ORDER BY q.n)) AS at,
      -- What the call counted in this day and month is put right; a day or month that has ended stays as it was.
      greatest(q.charge - h.trial - h.paid, -h.day_used) AS day_change,
      greatest(q.charge - h.trial - h.paid, -h.month_used) AS month_change,
      h.day > 0 AND h.day >= a.day AS account_day, h.month > 0 AND h.month >= a.month AS account_month,
      h.day > 0 AND h.day >= k.day AS key_day, h.month > 0 AND h.month >= k.month AS key_month
    FROM asked q JOIN open_hold h ON h.call_id = q.call JOIN account a ON a.id = h.account_id JOIN key k ON k.id = h.key_id
    WHERE q.times = 1 AND h.account_id = q.account AND h.replica = q.replica AND q.charge <= h.trial + h.paid
      AND h.key_hash IS NULL AND h.lots IS NULL AND NOT h.task AND a.last_at <= q.at + 3600000
  ), entries AS (
    INSERT INTO entry (op_id, kind, account_id, key_id, trial, paid, take_trial, take_paid, at, replica, reason, reference)
    SELECT p.call || '\x01'::bytea, p.kind, p.account, p.key, p.trial, p.paid, p.take_trial, p.take_paid, p.at, p.replica,
      CASE WHEN p.kind <> 1 THEN nullif(p.row->>'reason', '') END,
      p.reference
    FROM plain p ORDER BY p.account, p.n
  ), rows AS (
    INSERT INTO usage (account_id, call_id, key_id, at, ended_at, endpoint, model, provider, upstream_model, ending, reason, status,
      input, cache_read, cache_write_5m, cache_write_1h, image_input, audio_input, output, reasoning, image_output, audio_output,
      calls, seconds, tools, estimated, raw_usage, attempts, first_byte_ms, tier, dropped, cost,
      hold, charge, refunded, write_off, price_id, hash)
    SELECT p.account, p.call, p.key, r.at, r.ended_at, r.endpoint, r.model, r.provider, r.upstream_model, r.ending, r.reason, r.status,
      r.input, r.cache_read, r.cache_write_5m, r.cache_write_1h, r.image_input, r.audio_input, r.output, r.reasoning, r.image_output, r.audio_output,
      r.calls, r.seconds, r.tools, r.estimated, r.raw_usage, r.attempts, r.first_byte_ms, r.tier, r.dropped, r.cost,
      p.trial + p.paid, p.charge, 0, 0, coalesce(r.price_id, p.price_id), decode(right(p.reference, 64), 'hex')
    FROM plain p CROSS JOIN LATERAL jsonb_populate_record(NULL::usage, p.row) r
  ), holds AS (
    DELETE FROM open_hold USING plain p WHERE call_id = p.call
  ), accounts AS (
    UPDATE account SET last_at = s.at,
      trial_available = trial_available + s.trial - s.take_trial, paid_available = paid_available + s.paid - s.take_paid,
      trial_held = trial_held - s.trial, paid_held = paid_held - s.paid,
      day_used = greatest(day_used + s.day_change, 0), month_used = greatest(month_used + s.month_change, 0)
    FROM (SELECT p.account, max(p.at) AS at, sum(p.trial) AS trial, sum(p.paid) AS paid, sum(p.take_trial) AS take_trial,
        sum(p.take_paid) AS take_paid, coalesce(sum(p.day_change) FILTER (WHERE p.account_day), 0) AS day_change,
        coalesce(sum(p.month_change) FILTER (WHERE p.account_month), 0) AS month_change
      FROM plain p GROUP BY p.account) s WHERE id = s.account
  ), keys AS (
    UPDATE key SET held = key.held - s.held, spent = spent + s.charge,
      day_used = greatest(day_used + s.day_change, 0), month_used = greatest(month_used + s.month_change, 0)
    FROM (SELECT p.key, sum(p.trial + p.paid) AS held, sum(p.charge) AS charge,
        coalesce(sum(p.day_change) FILTER (WHERE p.key_day), 0) AS day_change,
        coalesce(sum(p.month_change) FILTER (WHERE p.key_month), 0) AS month_change
      FROM plain p GROUP BY p.key) s WHERE id = s.key
  )
  SELECT p.n FROM plain p;
END $$;

-- Holds without idempotency key and task, of accounts without trial credit, where neither account nor key has a limit and the
-- money suffices for all of them.
CREATE OR REPLACE FUNCTION tollgate_hold_plain(ops jsonb) RETURNS SETOF bigint LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
  RETURN QUERY
  WITH asked AS MATERIALIZED (
    SELECT n, (op->>'call')::bytea AS call, (op->>'account')::bytea AS account, (op->>'key')::bytea AS key,
      op->>'model' AS model, op->>'endpoint' AS endpoint, (op->>'at')::bigint + (op->>'life')::bigint AS due_at,
      (op->>'at')::bigint AS at, (op->>'amount')::bigint AS amount, (op->>'paid_only')::boolean AS paid_only,
      coalesce((op->>'topped_up')::boolean, true) AS topped_up, (op->>'expires_at')::bigint AS expires_at,
      (op->>'price_id')::bytea AS price_id, (op->>'replica')::bytea AS replica, count(*) OVER (PARTITION BY op->>'call') AS times
    FROM jsonb_array_elements(ops) WITH ORDINALITY AS o (op, n)
    WHERE op->>'kind' = 'hold' AND NOT op ?| ARRAY['task', 'again', 'key_hash']
  ), able AS MATERIALIZED (
    SELECT q.n, q.call, q.account, q.key, q.amount, q.paid_only, q.expires_at, q.price_id, q.replica, q.model, q.endpoint, q.due_at,
      greatest(a.last_at, max(q.at) OVER (PARTITION BY a.id ORDER BY q.n)) AS at,
      bool_and(q.times = 1) OVER account
        AND sum(q.amount) OVER account <= a.paid_available
        AND greatest(a.last_at, min(q.at) OVER account) / 86400000 = greatest(a.last_at, max(q.at) OVER account) / 86400000 AS plain
    FROM asked q JOIN account a ON a.id = q.account JOIN key k ON k.id = q.key AND k.account_id = a.id
    -- A clock that was far ahead is put right one by one.
    WHERE a.last_at <= q.at + 3600000 AND a.closed_at IS NULL AND k.revoked_at IS NULL AND a.trial_available = 0 AND (q.topped_up OR NOT a.topped_up)
      AND k.spent <= 2000000000000000000 AND k.cap IS NULL AND k.day_limit IS NULL AND k.month_limit IS NULL AND a.day_limit IS NULL AND a.month_limit IS NULL
    WINDOW account AS (PARTITION BY a.id)
  ), plain AS MATERIALIZED (
    SELECT * FROM able p WHERE p.plain
  ), owners AS MATERIALIZED (
    SELECT p.account, sum(p.amount) AS amount, max(p.at) AS at, max(p.at) / 86400000 AS day, tollgate_month(max(p.at)) AS month
    FROM plain p GROUP BY p.account
  ), entries AS (
    INSERT INTO entry (op_id, kind, account_id, key_id, trial, paid, at, price_id, model, endpoint, expires_at, paid_only, replica)
    SELECT p.call || '\x00'::bytea, 0, p.account, p.key, 0, p.amount, p.at, p.price_id, p.model, p.endpoint,
      p.expires_at, p.paid_only, p.replica FROM plain p ORDER BY p.account, p.n
  ), holds AS (
    INSERT INTO open_hold (call_id, account_id, key_id, trial, paid, paid_only, at, expires_at, price_id, model, endpoint,
      replica, due_at, day, day_used, month, month_used)
    SELECT p.call, p.account, p.key, 0, p.amount, p.paid_only, p.at, p.expires_at, p.price_id, p.model,
      p.endpoint, p.replica, p.due_at, s.day, p.amount, s.month, p.amount
    FROM plain p JOIN owners s ON s.account = p.account
  ), accounts AS (
    UPDATE account a SET paid_available = paid_available - s.amount, paid_held = paid_held + s.amount, last_at = s.at,
      day = tollgate_this_day(a.day, s.at), day_used = CASE WHEN a.day >= s.day THEN day_used ELSE 0 END + s.amount,
      month = tollgate_this_month(a.month, s.at), month_used = CASE WHEN a.month >= s.month THEN month_used ELSE 0 END + s.amount
    FROM owners s WHERE a.id = s.account
  ), keys AS (
    UPDATE key k SET held = held + s.amount,
      day = tollgate_this_day(k.day, s.at), day_used = CASE WHEN k.day >= s.day THEN day_used ELSE 0 END + s.amount,
      month = tollgate_this_month(k.month, s.at), month_used = CASE WHEN k.month >= s.month THEN month_used ELSE 0 END + s.amount
    FROM (SELECT p.key, sum(p.amount) AS amount, max(o.at) AS at, max(o.day) AS day, max(o.month) AS month
      FROM plain p JOIN owners o ON o.account = p.account GROUP BY p.key) s WHERE k.id = s.key
  )
  SELECT p.n FROM plain p;
END $$;
