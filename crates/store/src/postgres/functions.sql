-- The ledger's decisions, next to the rows they are about. The arithmetic is that of ledger.rs. Put in
-- place after the migrations, in a schema of this version.
-- Every function takes the account's row lock before anything else of that account, and a group takes all of its
-- locks in one order, so groups of different replicas wait for each other but never in a circle.

-- The clock all replicas share, in milliseconds. Replicas say with every beat what time it was (base) and by how much the database's clock
-- was ahead of it (correction): one that has jumped since then is not used until a replica has looked (clock.rs has the same hour).
CREATE OR REPLACE FUNCTION tollgate_now() RETURNS bigint LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN wall.at > known.base + 3600000 THEN known.base ELSE greatest(wall.at, known.base) END
  FROM (SELECT max(value) FILTER (WHERE name = 'clock_base') AS base,
      coalesce(max(value) FILTER (WHERE name = 'clock_correction'), 0) AS correction
    FROM meta WHERE name IN ('clock_base', 'clock_correction')) known
  CROSS JOIN LATERAL (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint - known.correction AS at) wall
$$;

-- The time of an entry of an account: not before its last, unless that was dated by a clock that was far ahead (`ledger_time` in clock.rs).
CREATE OR REPLACE FUNCTION tollgate_at(v_at bigint, v_last bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN v_last > v_at + 3600000 THEN v_at ELSE greatest(v_at, v_last) END
$$;

-- Months since the year 0, in UTC; days are the milliseconds of ledger time divided by those of a day.
CREATE OR REPLACE FUNCTION tollgate_month(v_at bigint) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  -- Days in a cycle of 400 years that begins in March; the date functions would cost ten times as much, twice for each call.
  v_days bigint := v_at / 86400000 + 719468;
  v_cycle bigint := v_days / 146097;
  v_day bigint := v_days - v_cycle * 146097;
  v_year bigint := (v_day - v_day / 1460 + v_day / 36524 - v_day / 146096) / 365;
BEGIN
  RETURN (v_cycle * 400 + v_year) * 12 + (5 * (v_day - v_year * 365 - v_year / 4 + v_year / 100) + 2) / 153 + 2;
END $$;

-- The day and the month a counter counts in, from now on. One that lies ahead by more than clocks may differ was counted by a clock that
-- was wrong: it is this one (`Used::at` in limits.rs).
CREATE OR REPLACE FUNCTION tollgate_this_day(v_counted bigint, v_at bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN v_counted > (v_at + 3600000) / 86400000 THEN v_at / 86400000 ELSE greatest(v_counted, v_at / 86400000) END
$$;
CREATE OR REPLACE FUNCTION tollgate_this_month(v_counted bigint, v_at bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN v_counted > tollgate_month(v_at + 3600000) THEN tollgate_month(v_at)
    ELSE greatest(v_counted, tollgate_month(v_at)) END
$$;

-- The first moment after a month.
CREATE OR REPLACE FUNCTION tollgate_month_ends(v_month bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT (make_date(((v_month + 1) / 12)::integer, ((v_month + 1) % 12 + 1)::integer, 1) - date '1970-01-01')::bigint * 86400000
$$;

-- Takes an amount from trial credit that expires, what expires first at first, and holds it or takes it away. Answers from
-- which credits it came; the rest of the amount never expires. The arithmetic of these three is that of lots.rs.
CREATE OR REPLACE FUNCTION tollgate_take_lots(v_account bytea, v_amount bigint, v_hold boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  l trial_lot%ROWTYPE;
  v_left bigint := v_amount;
  v_part bigint;
  v_parts text;
BEGIN
  FOR l IN SELECT * FROM trial_lot WHERE account_id = v_account AND free > 0 ORDER BY expires_at, credit LOOP
    v_part := least(v_left, l.free);
    EXIT WHEN v_part <= 0;
    UPDATE trial_lot SET free = free - v_part, held = held + CASE WHEN v_hold THEN v_part ELSE 0 END
      WHERE account_id = v_account AND credit = l.credit;
    v_left := v_left - v_part;
    v_parts := concat_ws(',', v_parts, encode(l.credit, 'hex') || ':' || v_part);
  END LOOP;
  RETURN v_parts;
END $$;

-- Ends what a hold took from such credit: the first parts are spent, the others free again.
CREATE OR REPLACE FUNCTION tollgate_close_lots(v_account bytea, v_parts text, v_spent bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_pair text;
  v_left bigint := v_spent;
  v_part bigint;
  v_gone bigint;
BEGIN
  FOREACH v_pair IN ARRAY string_to_array(v_parts, ',') LOOP
    v_part := split_part(v_pair, ':', 2)::bigint;
    v_gone := least(v_left, v_part);
    v_left := v_left - v_gone;
    UPDATE trial_lot SET held = held - v_part, free = free + v_part - v_gone
      WHERE account_id = v_account AND credit = decode(split_part(v_pair, ':', 1), 'hex');
  END LOOP;
END $$;

-- Takes away what has expired of the account's trial credit and is not held, by the time that is certain. Answers how many credits that were.
CREATE OR REPLACE FUNCTION tollgate_lapse(v_account bytea, v_at bigint, v_sure bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  l trial_lot%ROWTYPE;
  v_gone bigint := 0;
  v_count bigint := 0;
BEGIN
  FOR l IN SELECT * FROM trial_lot WHERE account_id = v_account AND expires_at <= least(v_sure, v_at) AND free > 0
    ORDER BY expires_at, credit LOOP
    INSERT INTO entry (op_id, kind, account_id, trial, paid, at, reference, actor, reason)
    VALUES (l.credit || '\xcb'::bytea || int4send(l.lapses + 1), 9, v_account, l.free, 0, v_at, l.reference, 'tollgate', 'expired');
    UPDATE trial_lot SET free = 0, lapses = lapses + 1 WHERE account_id = v_account AND credit = l.credit;
    v_gone := v_gone + l.free;
    v_count := v_count + 1;
  END LOOP;
  IF v_count > 0 THEN
    UPDATE account SET trial_available = trial_available - v_gone, last_at = v_at WHERE id = v_account;
    PERFORM tollgate_seal(ARRAY[v_account]);
  END IF;
  RETURN v_count;
END $$;

-- The same for one account, by itself.
CREATE OR REPLACE FUNCTION tollgate_lapse_account(v_account bytea, v_at bigint, v_sure bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_last bigint;
BEGIN
  -- Readers come by here too, and wait for nobody: whoever has the row does the same with the next hold, or the sweep does.
  SELECT last_at INTO v_last FROM account WHERE id = v_account FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN 0;
  END IF;
  RETURN tollgate_lapse(v_account, tollgate_at(v_at, v_last), v_sure);
END $$;

-- A limit that stands in the way of an amount: its name, x when it begins anew (0 = waiting cannot help), y the limit.
CREATE OR REPLACE FUNCTION tollgate_limit(a account, k key, v_amount bigint, v_at bigint) RETURNS tollgate_outcome
LANGUAGE plpgsql AS $$
DECLARE
  v_day bigint := v_at / 86400000;
  v_month bigint := tollgate_month(v_at);
  v_over text;
  v_limit bigint;
  v_ends bigint := 0;
BEGIN
  -- A key without a limit has that of its column (bounds.rs).
  IF k.spent::numeric + k.held + v_amount > coalesce(k.cap, 4000000000000000000) THEN
    v_over := 'key_total'; v_limit := coalesce(k.cap, 4000000000000000000);
  ELSIF (CASE WHEN k.day >= v_day THEN k.day_used ELSE 0 END)::numeric + v_amount > k.day_limit THEN
    v_over := 'key_day'; v_limit := k.day_limit; v_ends := (tollgate_this_day(k.day, v_at) + 1) * 86400000;
  ELSIF (CASE WHEN k.month >= v_month THEN k.month_used ELSE 0 END)::numeric + v_amount > k.month_limit THEN
    v_over := 'key_month'; v_limit := k.month_limit; v_ends := tollgate_month_ends(tollgate_this_month(k.month, v_at));
  ELSIF (CASE WHEN a.day >= v_day THEN a.day_used ELSE 0 END)::numeric + v_amount > a.day_limit THEN
    v_over := 'account_day'; v_limit := a.day_limit; v_ends := (tollgate_this_day(a.day, v_at) + 1) * 86400000;
  ELSIF (CASE WHEN a.month >= v_month THEN a.month_used ELSE 0 END)::numeric + v_amount > a.month_limit THEN
    v_over := 'account_month'; v_limit := a.month_limit; v_ends := tollgate_month_ends(tollgate_this_month(a.month, v_at));
  ELSE
    RETURN NULL;
  END IF;
  RETURN ROW(v_over, CASE WHEN v_amount <= v_limit THEN v_ends ELSE 0 END, v_limit, NULL, NULL, NULL, NULL)::tollgate_outcome;
END $$;

-- How an amount, or what there is if that is at least v_least, for a hold or for more of one, is taken from an account: held (x
-- trial, y paid), or why not (insufficient: x is what there is). The arithmetic is that of wish.rs.
CREATE OR REPLACE FUNCTION tollgate_reserve(a account, k key, v_wanted bigint, v_least bigint, v_paid_only boolean, v_at bigint)
RETURNS tollgate_outcome LANGUAGE plpgsql AS $$
DECLARE
  v_amount bigint := v_wanted;
  v_usable bigint := CASE WHEN v_paid_only THEN 0 ELSE a.trial_available END + a.paid_available;
  v_day bigint := v_at / 86400000;
  v_month bigint;
  v_trial bigint;
  r tollgate_outcome;
BEGIN
  IF k.cap IS NOT NULL OR k.day_limit IS NOT NULL OR k.month_limit IS NOT NULL OR a.day_limit IS NOT NULL
    OR a.month_limit IS NOT NULL OR k.spent > 2000000000000000000 THEN
    r := tollgate_limit(a, k, v_least, v_at);
    IF r.outcome IS NOT NULL THEN
      RETURN r;
    END IF;
    v_month := tollgate_month(v_at);
    -- Where there is no limit, least() sees a null and leaves it out.
    v_amount := least(v_amount::numeric, k.cap::numeric - k.spent - k.held,
      k.day_limit - CASE WHEN k.day >= v_day THEN k.day_used ELSE 0 END,
      k.month_limit - CASE WHEN k.month >= v_month THEN k.month_used ELSE 0 END,
      a.day_limit - CASE WHEN a.day >= v_day THEN a.day_used ELSE 0 END,
      a.month_limit - CASE WHEN a.month >= v_month THEN a.month_used ELSE 0 END);
  END IF;
  IF v_usable < v_least THEN
    RETURN ROW('insufficient', v_usable, 0, NULL, NULL, NULL, NULL)::tollgate_outcome;
  END IF;
  v_amount := least(v_amount, v_usable);
  v_trial := CASE WHEN v_paid_only THEN 0 ELSE least(v_amount, a.trial_available) END;
  RETURN ROW('held', v_trial, v_amount - v_trial, NULL, NULL, NULL, NULL)::tollgate_outcome;
END $$;

-- Moves what was reserved from available to held and counts it in the day and month. Answers from which credits it came.
CREATE OR REPLACE FUNCTION tollgate_set_aside(v_account bytea, v_key bytea, v_trial bigint, v_paid bigint, v_at bigint)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_day bigint := v_at / 86400000;
  v_month bigint := tollgate_month(v_at);
BEGIN
  UPDATE account SET trial_available = trial_available - v_trial, paid_available = paid_available - v_paid,
    trial_held = trial_held + v_trial, paid_held = paid_held + v_paid, last_at = v_at,
    day = tollgate_this_day(day, v_at), day_used = CASE WHEN day >= v_day THEN day_used ELSE 0 END + v_trial + v_paid,
    month = tollgate_this_month(month, v_at), month_used = CASE WHEN month >= v_month THEN month_used ELSE 0 END + v_trial + v_paid
    WHERE id = v_account;
  UPDATE key SET held = held + v_trial + v_paid,
    day = tollgate_this_day(day, v_at), day_used = CASE WHEN day >= v_day THEN day_used ELSE 0 END + v_trial + v_paid,
    month = tollgate_this_month(month, v_at), month_used = CASE WHEN month >= v_month THEN month_used ELSE 0 END + v_trial + v_paid
    WHERE id = v_key;
  RETURN CASE WHEN v_trial > 0 THEN tollgate_take_lots(v_account, v_trial, true) END;
END $$;

-- A hold: held (x trial, y paid), or why not. Sent again it answers as it did the first time.
CREATE OR REPLACE FUNCTION tollgate_hold(op jsonb) RETURNS tollgate_outcome LANGUAGE plpgsql AS $$
DECLARE
  a account%ROWTYPE;
  k key%ROWTYPE;
  d idem%ROWTYPE;
  r tollgate_outcome;
  v_call bytea := (op->>'call')::bytea;
  v_hash bytea := (op->>'key_hash')::bytea;
  v_amount bigint := (op->>'amount')::bigint;
  v_paid_only boolean := (op->>'paid_only')::boolean;
  v_trial bigint;
  v_paid bigint;
  v_at bigint;
  v_lots text;
BEGIN
  SELECT * INTO a FROM account WHERE id = (op->>'account')::bytea;
  SELECT * INTO k FROM key WHERE id = (op->>'key')::bytea;
  IF a.id IS NULL OR k.id IS NULL OR k.account_id <> a.id THEN
    RETURN ROW('no_account', 0, 0, NULL, NULL, NULL, NULL)::tollgate_outcome;
  END IF;
  IF (op->>'again')::boolean THEN
    SELECT trial, paid INTO v_trial, v_paid FROM entry WHERE op_id = v_call || '\x00'::bytea;
    IF FOUND THEN
      RETURN ROW('held', v_trial, v_paid, NULL, NULL, NULL, NULL)::tollgate_outcome;
    END IF;
  END IF;
  -- Replicas hear of it a little later.
  IF k.revoked_at IS NOT NULL THEN
    RETURN ROW('no_account', 0, 0, NULL, NULL, NULL, NULL)::tollgate_outcome;
  END IF;
  IF a.closed_at IS NOT NULL THEN
    RETURN ROW('suspended', 0, 0, NULL, NULL, NULL, NULL)::tollgate_outcome;
  END IF;
  IF v_hash IS NOT NULL THEN
    SELECT * INTO d FROM idem WHERE account_id = a.id AND key_hash = v_hash;
    IF FOUND THEN
      IF d.fingerprint <> (op->>'fingerprint')::bytea THEN
        RETURN ROW('idem_conflict', 0, 0, NULL, NULL, NULL, NULL)::tollgate_outcome;
      ELSIF d.done = 0 THEN
        RETURN ROW('idem_running', 0, 0, d.call_id, NULL, NULL, NULL)::tollgate_outcome;
      END IF;
      RETURN ROW('idem_done', 0, 0, d.call_id, d.status, d.content_type, d.reply)::tollgate_outcome;
    END IF;
  END IF;
  IF a.topped_up AND NOT coalesce((op->>'topped_up')::boolean, true) THEN
    RETURN ROW('topped_up', 0, 0, NULL, NULL, NULL, NULL)::tollgate_outcome;
  END IF;
  v_at := tollgate_at((op->>'at')::bigint, a.last_at);
  IF a.trial_available > 0 AND tollgate_lapse(a.id, v_at, (op->>'sure')::bigint) > 0 THEN
    SELECT * INTO a FROM account WHERE id = a.id;
  END IF;
  r := tollgate_reserve(a, k, v_amount, least(coalesce((op->>'least')::bigint, v_amount), v_amount), v_paid_only, v_at);
  IF r.outcome <> 'held' THEN
    RETURN r;
  END IF;
  v_trial := r.x;
  v_paid := r.y;
  v_lots := tollgate_set_aside(a.id, k.id, v_trial, v_paid, v_at);
  INSERT INTO entry (op_id, kind, account_id, key_id, trial, paid, at, price_id, model, endpoint, expires_at, paid_only,
    replica, lots)
  VALUES (v_call || '\x00'::bytea, 0, a.id, k.id, v_trial, v_paid, v_at, (op->>'price_id')::bytea, op->>'model',
    op->>'endpoint', (op->>'expires_at')::bigint, v_paid_only, (op->>'replica')::bytea, v_lots);
  INSERT INTO open_hold (call_id, account_id, key_id, trial, paid, paid_only, at, expires_at, price_id, model, endpoint,
    key_hash, replica, due_at, lots, day, day_used, month, month_used, task)
  VALUES (v_call, a.id, k.id, v_trial, v_paid, v_paid_only, v_at, (op->>'expires_at')::bigint, (op->>'price_id')::bytea,
    op->>'model', op->>'endpoint', v_hash, (op->>'replica')::bytea, (op->>'at')::bigint + (op->>'life')::bigint, v_lots,
    v_at / 86400000, v_trial + v_paid, tollgate_month(v_at), v_trial + v_paid, op ? 'task');
  IF op ? 'task' THEN
    PERFORM tollgate_new_task(op);
  END IF;
  IF v_hash IS NOT NULL THEN
    INSERT INTO idem (account_id, key_hash, fingerprint, call_id, at)
    VALUES (a.id, v_hash, (op->>'fingerprint')::bytea, v_call, v_at);
  END IF;
  RETURN ROW('held', v_trial, v_paid, NULL, NULL, NULL, NULL)::tollgate_outcome;
END $$;

-- More for an open hold: held (x trial, y paid of the whole hold then), or why not. A step seen before changes nothing.
CREATE OR REPLACE FUNCTION tollgate_extend(op jsonb) RETURNS tollgate_outcome LANGUAGE plpgsql AS $$
DECLARE
  a account%ROWTYPE;
  k key%ROWTYPE;
  h open_hold%ROWTYPE;
  r tollgate_outcome;
  v_op bytea := (op->>'op')::bytea;
  v_more bigint := (op->>'amount')::bigint;
  v_at bigint;
  v_day bigint;
  v_month bigint;
  v_lots text;
BEGIN
  SELECT * INTO h FROM open_hold WHERE call_id = (op->>'call')::bytea AND account_id = (op->>'account')::bytea;
  IF NOT FOUND THEN
    RETURN ROW('not_open', 0, 0, NULL, NULL, NULL, NULL)::tollgate_outcome;
  END IF;
  -- Steps count up; a later one says that this one was asked before.
  IF EXISTS (SELECT 1 FROM entry WHERE op_id >= v_op AND op_id < h.call_id || '\x03'::bytea) THEN
    RETURN ROW('held', h.trial, h.paid, NULL, NULL, NULL, NULL)::tollgate_outcome;
  END IF;
  SELECT * INTO a FROM account WHERE id = h.account_id;
  SELECT * INTO k FROM key WHERE id = h.key_id;
  v_at := tollgate_at((op->>'at')::bigint, a.last_at);
  IF a.trial_available > 0 AND tollgate_lapse(a.id, v_at, (op->>'sure')::bigint) > 0 THEN
    SELECT * INTO a FROM account WHERE id = a.id;
  END IF;
  r := tollgate_reserve(a, k, v_more, least(coalesce((op->>'least')::bigint, v_more), v_more), h.paid_only, v_at);
  IF r.outcome <> 'held' THEN
    RETURN r;
  END IF;
  v_lots := tollgate_set_aside(a.id, k.id, r.x, r.y, v_at);
  INSERT INTO entry (op_id, kind, account_id, key_id, trial, paid, at, replica, lots)
  VALUES (v_op, 4, a.id, k.id, r.x, r.y, v_at, (op->>'replica')::bytea, v_lots);
  v_day := v_at / 86400000;
  v_month := tollgate_month(v_at);
  UPDATE open_hold SET trial = trial + r.x, paid = paid + r.y, lots = nullif(concat_ws(',', lots, v_lots), ''),
    day = v_day, day_used = CASE WHEN day = v_day THEN day_used ELSE 0 END + r.x + r.y,
    month = v_month, month_used = CASE WHEN month = v_month THEN month_used ELSE 0 END + r.x + r.y
    WHERE call_id = h.call_id;
  RETURN ROW('held', h.trial + r.x, h.paid + r.y, NULL, NULL, NULL, NULL)::tollgate_outcome;
END $$;

-- Opens, without money, a hold that another replica gave up in the name of the one that asks, so that it can be closed once
-- more: `held` says how much was held. `barred`: its idempotency key has paid for another call since.
CREATE OR REPLACE FUNCTION tollgate_reopen(op jsonb, OUT held bigint, OUT barred boolean) LANGUAGE plpgsql AS $$
DECLARE
  l lost_hold%ROWTYPE;
  v_at bigint;
BEGIN
  barred := false;
  SELECT * INTO l FROM lost_hold WHERE call_id = (op->>'call')::bytea AND replica = (op->>'replica')::bytea;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  held := l.held;
  IF l.key_hash IS NOT NULL THEN
    INSERT INTO idem (account_id, key_hash, fingerprint, call_id, at)
    VALUES (l.account_id, l.key_hash, l.fingerprint, l.call_id, l.at)
    -- What its loss has left there makes room for its end.
    ON CONFLICT (account_id, key_hash) DO UPDATE SET done = 0, status = NULL, content_type = NULL, reply = NULL
      WHERE idem.call_id = excluded.call_id;
    barred := NOT FOUND;
  END IF;
  SELECT tollgate_at((op->>'at')::bigint, last_at) INTO v_at FROM account WHERE id = l.account_id;
  INSERT INTO entry (op_id, kind, account_id, key_id, trial, paid, at, replica, reason)
  VALUES (l.call_id || '\x03'::bytea, 10, l.account_id, l.key_id, 0, 0, v_at, l.replica, 'replica_back');
  INSERT INTO open_hold (call_id, account_id, key_id, trial, paid, paid_only, at, expires_at, price_id, model, endpoint,
    key_hash, replica, due_at)
  VALUES (l.call_id, l.account_id, l.key_id, 0, 0, l.paid_only, l.at, l.expires_at, l.price_id, l.model, l.endpoint,
    CASE WHEN NOT barred THEN l.key_hash END, l.replica, (op->>'at')::bigint);
  UPDATE account SET last_at = v_at WHERE id = l.account_id;
  DELETE FROM usage WHERE account_id = l.account_id AND call_id = l.call_id;
  DELETE FROM lost_hold WHERE call_id = l.call_id;
END $$;

-- A close: closed (x captured, y written off); late when it was closed before; unknown when it never was held.
CREATE OR REPLACE FUNCTION tollgate_close(op jsonb) RETURNS tollgate_outcome LANGUAGE plpgsql AS $$
DECLARE
  a account%ROWTYPE;
  h open_hold%ROWTYPE;
  u usage%ROWTYPE;
  v_call bytea := (op->>'call')::bytea;
  v_charge bigint := greatest((op->>'charge')::bigint, 0);
  -- What of it the customer pays at most.
  v_due bigint := greatest(least((op->>'most')::bigint, v_charge), 0);
  v_kind smallint;
  v_extend_trial bigint;
  v_extend_paid bigint;
  v_take_trial bigint;
  v_take_paid bigint;
  v_write_off bigint;
  v_captured bigint;
  v_change bigint;
  v_at bigint;
  v_held bigint;
  v_barred boolean := false;
  -- Which terminal entry of the call this is: the second one when it was given up by another replica before.
  v_class bytea := '\x01';
  v_lots text;
  v_ends text;
  -- The hash of the usage row.
  v_reference text;
BEGIN
  IF op ? 'task' THEN
    v_ends := tollgate_task_ends(op);
    IF v_ends = 'stale' THEN
      RETURN ROW('stale', 0, 0, NULL, NULL, NULL, NULL)::tollgate_outcome;
    END IF;
  END IF;
  SELECT * INTO h FROM open_hold WHERE call_id = v_call;
  IF FOUND AND h.task AND NOT op ? 'task' THEN
    -- The hold of a task ends with its task only.
    RETURN ROW('late', 0, 0, NULL, NULL, NULL, NULL)::tollgate_outcome;
  END IF;
  IF h.call_id IS NULL AND NOT op ? 'task' THEN
    SELECT r.held, r.barred INTO v_held, v_barred FROM tollgate_reopen(op) r;
    SELECT * INTO h FROM open_hold WHERE call_id = v_call;
    v_class := '\x04';
  END IF;
  IF h.call_id IS NULL THEN
    SELECT sum(take_trial + take_paid) INTO v_captured FROM entry
      WHERE op_id IN (v_call || '\x01'::bytea, v_call || '\x04'::bytea);
    IF v_captured IS NULL THEN
      RETURN ROW('unknown', 0, 0, NULL, NULL, NULL, NULL)::tollgate_outcome;
    END IF;
    SELECT coalesce(sum(paid), 0) INTO v_write_off FROM entry WHERE op_id = v_call || '\xc8'::bytea;
    RETURN ROW(CASE WHEN (op->>'again')::boolean THEN 'closed' ELSE 'late' END, v_captured, v_write_off,
      NULL, NULL, NULL, NULL)::tollgate_outcome;
  END IF;
  SELECT * INTO a FROM account WHERE id = h.account_id;
  -- The customer of a task knows the most it costs: what its provider counts beyond that is not taken from him.
  v_barred := v_barred OR op ? 'task';
  v_extend_trial := CASE WHEN h.paid_only OR v_barred THEN 0
    ELSE least(greatest(v_due - h.trial - h.paid, 0), a.trial_available) END;
  v_extend_paid := CASE WHEN v_barred THEN 0
    ELSE least(greatest(v_due - h.trial - h.paid - v_extend_trial, 0), a.paid_available) END;
  -- What is forgiven is taken from nobody.
  v_take_trial := CASE WHEN (op->'task'->>'forgiven')::boolean THEN 0 ELSE least(v_due, h.trial + v_extend_trial) END;
  v_take_paid := CASE WHEN (op->'task'->>'forgiven')::boolean THEN 0
    ELSE least(v_due - v_take_trial, h.paid + v_extend_paid) END;
  v_captured := v_take_trial + v_take_paid;
  v_write_off := v_charge - v_captured;
  v_reference := tollgate_row_hash(op->'row', h.key_id, h.price_id, coalesce(v_held, h.trial + h.paid), v_captured, v_write_off);
  v_kind := CASE WHEN v_charge > 0 THEN 1 WHEN (op->'row'->>'ending') = '4' THEN 3 ELSE 2 END;
  v_at := tollgate_at((op->>'at')::bigint, a.last_at);
  IF v_extend_trial + v_extend_paid > 0 THEN
    v_lots := CASE WHEN v_extend_trial > 0 THEN tollgate_take_lots(a.id, v_extend_trial, true) END;
    INSERT INTO entry (op_id, kind, account_id, key_id, trial, paid, at, replica, lots)
    VALUES (v_call || '\x02'::bytea, 4, a.id, h.key_id, v_extend_trial, v_extend_paid, v_at, (op->>'replica')::bytea, v_lots);
  END IF;
  INSERT INTO entry (op_id, kind, account_id, key_id, trial, paid, take_trial, take_paid, at, replica, reason, reference)
  VALUES (v_call || v_class, v_kind, a.id, h.key_id, h.trial + v_extend_trial, h.paid + v_extend_paid,
    v_take_trial, v_take_paid, v_at, (op->>'replica')::bytea,
    CASE WHEN v_kind = 1 THEN NULL ELSE nullif(op->'row'->>'reason', '') END,
    v_reference);
  IF v_write_off > 0 THEN
    INSERT INTO entry (op_id, kind, account_id, key_id, trial, paid, at, replica)
    VALUES (v_call || '\xc8'::bytea, 5, a.id, h.key_id, 0, v_write_off, v_at, (op->>'replica')::bytea);
  END IF;
  u := jsonb_populate_record(NULL::usage, op->'row');
  u.account_id := a.id;
  u.key_id := h.key_id;
  u.hold := coalesce(v_held, h.trial + h.paid);
  u.charge := v_captured;
  u.refunded := 0;
  u.write_off := v_write_off;
  u.price_id := coalesce(u.price_id, h.price_id);
  u.hash := decode(right(v_reference, 64), 'hex');
  INSERT INTO usage SELECT u.*;
  IF op ? 'task' THEN
    PERFORM tollgate_end_task(op, v_at);
  ELSIF h.replica <> (op->>'replica')::bytea THEN
    INSERT INTO lost_hold (call_id, account_id, key_id, held, paid_only, at, expires_at, price_id, model, endpoint, key_hash,
      fingerprint, replica, lost_at)
    SELECT h.call_id, h.account_id, h.key_id, h.trial + h.paid, h.paid_only, h.at, h.expires_at, h.price_id, h.model,
      h.endpoint, h.key_hash, i.fingerprint, h.replica, tollgate_now()
    FROM (SELECT 1) one LEFT JOIN idem i ON i.account_id = a.id AND i.key_hash = h.key_hash;
  END IF;
  IF h.key_hash IS NOT NULL THEN
    IF (op->>'keep')::boolean OR v_captured > 0 THEN
      -- Beyond what an account may have of replies the key is done without one.
      IF (op->>'reply_bytes')::bigint + (SELECT coalesce(sum(bytes), 0) FROM idem_kept WHERE account_id = a.id)
        > (op->>'reply_room')::bigint THEN
        op := op - 'reply' - 'status' - 'content_type';
      ELSIF op ? 'reply' THEN
        INSERT INTO idem_kept (account_id, hour, bytes) VALUES (a.id, v_at / 3600000, (op->>'reply_bytes')::bigint)
          ON CONFLICT (account_id, hour) DO UPDATE SET bytes = idem_kept.bytes + excluded.bytes;
      END IF;
      UPDATE idem SET done = 1, status = (op->>'status')::integer, content_type = op->>'content_type',
        reply = (op->>'reply')::bytea WHERE account_id = a.id AND key_hash = h.key_hash;
    ELSE
      DELETE FROM idem WHERE account_id = a.id AND key_hash = h.key_hash;
    END IF;
  END IF;
  DELETE FROM open_hold WHERE call_id = v_call;
  -- What the call counted in this day and month is put right; a day or month that has ended stays as it was.
  v_change := v_captured - h.trial - h.paid;
  UPDATE account SET last_at = v_at,
    trial_available = trial_available + h.trial - v_take_trial, paid_available = paid_available + h.paid - v_take_paid,
    trial_held = trial_held - h.trial, paid_held = paid_held - h.paid,
    day_used = CASE WHEN h.day >= day AND h.day > 0 THEN greatest(day_used + greatest(v_change, -h.day_used), 0) ELSE day_used END,
    month_used = CASE WHEN h.month >= month AND h.month > 0 THEN greatest(month_used + greatest(v_change, -h.month_used), 0)
      ELSE month_used END WHERE id = a.id;
  UPDATE key SET held = held - h.trial - h.paid, spent = spent + v_captured,
    day_used = CASE WHEN h.day >= day AND h.day > 0 THEN greatest(day_used + greatest(v_change, -h.day_used), 0) ELSE day_used END,
    month_used = CASE WHEN h.month >= month AND h.month > 0 THEN greatest(month_used + greatest(v_change, -h.month_used), 0)
      ELSE month_used END WHERE id = h.key_id;
  v_lots := concat_ws(',', h.lots, v_lots);
  IF v_lots <> '' THEN
    PERFORM tollgate_close_lots(a.id, v_lots, v_take_trial);
    PERFORM tollgate_lapse(a.id, v_at, (op->>'sure')::bigint);
  END IF;
  RETURN ROW('closed', v_captured, v_write_off, NULL, NULL, NULL, NULL)::tollgate_outcome;
END $$;

-- Operations in their order: one statement, one transaction, one outcome for each. Those that are plain need none of this (plain.rs).
CREATE OR REPLACE FUNCTION tollgate_apply(ops jsonb) RETURNS SETOF tollgate_outcome LANGUAGE plpgsql AS $$
DECLARE
  op jsonb;
  v_accounts bytea[] := ARRAY(SELECT DISTINCT (o->>'account')::bytea FROM jsonb_array_elements(ops) o);
BEGIN
  -- Prices before accounts, and each in the order of ids: the same order in every replica.
  IF jsonb_path_exists(ops, '$[*].price') THEN
    INSERT INTO price (id, json)
    SELECT DISTINCT ON (id) id, json FROM (SELECT coalesce(o->'row'->>'price_id', o->>'price_id')::bytea AS id, o->>'price' AS json
      FROM jsonb_array_elements(ops) o WHERE o ? 'price') new ORDER BY id ON CONFLICT DO NOTHING;
  END IF;
  PERFORM 1 FROM account WHERE id = ANY (v_accounts) ORDER BY id FOR NO KEY UPDATE;
  FOR op IN SELECT o FROM jsonb_array_elements(ops) o LOOP
    IF op->>'kind' = 'hold' THEN
      RETURN NEXT tollgate_hold(op);
    ELSIF op->>'kind' = 'extend' THEN
      RETURN NEXT tollgate_extend(op);
    ELSIF op->>'kind' = 'close' THEN
      RETURN NEXT tollgate_close(op);
    ELSIF op->>'kind' LIKE 'task%' THEN
      RETURN NEXT ROW(tollgate_task(op), 0, 0, NULL, NULL, NULL, NULL)::tollgate_outcome;
    ELSE
      INSERT INTO usage SELECT r.* FROM jsonb_populate_record(NULL::usage, (op->'row') || jsonb_build_object(
        'hold', 0, 'charge', 0, 'refunded', 0, 'write_off', 0)) r ON CONFLICT DO NOTHING;
      RETURN NEXT ROW('noted', 0, 0, NULL, NULL, NULL, NULL)::tollgate_outcome;
    END IF;
  END LOOP;
  PERFORM tollgate_seal(v_accounts);
END $$;

-- A top-up, adjustment or refund. v_kind as in entry. Answers: applied, before, or what is wrong.
CREATE OR REPLACE FUNCTION tollgate_credit(v_op bytea, v_kind smallint, v_account bytea, v_call bytea, v_trial_pot boolean,
  v_amount bigint, v_at bigint, v_reference text, v_actor text, v_reason text, v_expires_at bigint, v_most bigint, v_sure bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  a account%ROWTYPE;
  e entry%ROWTYPE;
  v_trial bigint := CASE WHEN v_trial_pot THEN v_amount ELSE 0 END;
  v_paid bigint := CASE WHEN v_trial_pot THEN 0 ELSE v_amount END;
  v_key bytea;
  v_lots text;
BEGIN
  SELECT * INTO a FROM account WHERE id = v_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN 'no_account'; END IF;
  v_at := tollgate_at(v_at, a.last_at);
  IF tollgate_lapse(a.id, v_at, v_sure) > 0 THEN
    SELECT * INTO a FROM account WHERE id = v_account;
  END IF;
  SELECT * INTO e FROM entry WHERE op_id = v_op;
  IF FOUND THEN
    RETURN CASE WHEN e.account_id = v_account AND e.trial + e.paid = v_amount AND e.kind = v_kind
      THEN 'before' ELSE 'other' END;
  END IF;
  IF v_kind = 8 THEN
    SELECT * INTO e FROM entry
      WHERE op_id IN (v_call || '\x01'::bytea, v_call || '\x04'::bytea) AND kind = 1 AND account_id = v_account;
    IF NOT FOUND THEN RETURN 'no_charge'; END IF;
    IF v_amount > e.take_trial + e.take_paid THEN RETURN 'above_charge'; END IF;
    v_key := e.key_id;
    v_paid := least(v_amount, e.take_paid);
    v_trial := v_amount - v_paid;
  END IF;
  IF v_amount > 0 AND a.trial_available::numeric + a.paid_available + a.trial_held + a.paid_held + v_amount > v_most THEN
    RETURN 'above_most';
  END IF;
  IF v_kind = 8 THEN
    UPDATE usage SET refunded = refunded + v_amount WHERE account_id = v_account AND call_id = v_call;
    UPDATE key SET spent = spent - v_amount WHERE id = v_key;
  END IF;
  IF a.trial_available + v_trial < 0 OR a.paid_available + v_paid < 0 THEN RETURN 'below_zero'; END IF;
  IF v_trial < 0 THEN
    v_lots := tollgate_take_lots(a.id, -v_trial, false);
  END IF;
  INSERT INTO entry (op_id, kind, account_id, key_id, trial, paid, at, reference, actor, reason, expires_at, lots)
  VALUES (v_op, v_kind, v_account, v_key, v_trial, v_paid, v_at, v_reference, v_actor, v_reason, v_expires_at, v_lots);
  IF v_expires_at IS NOT NULL THEN
    INSERT INTO trial_lot (account_id, credit, reference, expires_at, free)
    VALUES (a.id, substring(v_op FROM 1 FOR 16), v_reference, v_expires_at, v_amount);
  END IF;
  UPDATE account SET trial_available = trial_available + v_trial, paid_available = paid_available + v_paid, last_at = v_at,
    topped_up = topped_up OR (v_kind = 6 AND NOT v_trial_pot),
    changed_at = CASE WHEN v_kind = 6 AND NOT v_trial_pot AND NOT topped_up THEN tollgate_now() ELSE changed_at END
    WHERE id = v_account;
  PERFORM tollgate_seal(ARRAY[v_account]);
  RETURN 'applied';
EXCEPTION WHEN unique_violation THEN
  -- The same credit id for two accounts at one moment: the other one won.
  RETURN 'other';
END $$;
