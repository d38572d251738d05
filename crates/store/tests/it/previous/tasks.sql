-- The changes of a task. Whoever changes one shows the fence it was given; a number that is not the newest changes nothing.

-- Writes down the task of a hold that was granted, in the hands of the replica that took it. All times of a task are by the clock of
-- the database, so that its age is the same for all replicas and none of their clocks ends it early.
CREATE OR REPLACE FUNCTION tollgate_new_task(op jsonb) RETURNS void LANGUAGE sql AS $$
  INSERT INTO task (call_id, account_id, key_id, endpoint, model, state, plan, webhook_url, created_at, price_id, due_at, owner)
  VALUES ((op->>'call')::bytea, (op->>'account')::bytea, (op->>'key')::bytea, op->>'endpoint', op->>'model', 0,
    op->'task'->>'plan', op->'task'->>'webhook_url', tollgate_now(), (op->>'price_id')::bytea,
    tollgate_now() + (op->'task'->>'lease')::bigint, (op->>'replica')::bytea)
$$;

-- Gives a task its name at the provider: done, stale, or taken, where another task has that name there. Who comes to it at the same time
-- waits for whoever came first. Only one creation was ever sent, so what its sender knows is true whoever has the task by now; whoever
-- found it shows the fence. A task that is refused the name it was created with is known to have been taken: nobody says later that it was not.
CREATE OR REPLACE FUNCTION tollgate_name_task(op jsonb, v_due bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  t task%ROWTYPE;
  v_name text := op->>'upstream_id';
  v_at bigint := tollgate_now();
  v_found boolean := op->>'kind' <> 'task_accepted';
BEGIN
  SELECT * INTO t FROM task WHERE call_id = (op->>'task')::bytea FOR UPDATE;
  IF (op->>'again')::boolean AND t.upstream_id = v_name THEN
    RETURN 'done';
  ELSIF t.call_id IS NULL OR t.state >= 5 OR t.upstream_id IS NOT NULL
    OR v_found AND (NOT t.leased OR t.fence <> (op->>'fence')::bigint) THEN
    RETURN 'stale';
  END IF;
  INSERT INTO task_name (home, upstream_id, call_id)
    VALUES (coalesce(t.upstream_host, t.provider, ''), v_name, t.call_id) ON CONFLICT DO NOTHING;
  IF FOUND THEN
    UPDATE task SET state = coalesce((op->>'state')::smallint, 2::smallint), upstream_id = v_name, checked_at = v_at,
      unknown_since = NULL, heard = 2, absent_since = NULL, due_at = v_due, leased = false, quiet = false, fence = fence + 1
      WHERE call_id = t.call_id;
    RETURN 'done';
  ELSIF NOT v_found THEN
    UPDATE task SET state = 4, unknown_since = coalesce(unknown_since, v_at), heard = 2, absent_since = NULL, due_at = v_due,
      leased = false, fence = fence + 1 WHERE call_id = t.call_id;
  END IF;
  RETURN 'taken';
END $$;

-- A step of a task that goes on: done, or stale. The same step twice is done once.
CREATE OR REPLACE FUNCTION tollgate_task(op jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_task bytea := (op->>'task')::bytea;
  v_due bigint := tollgate_now() + (op->>'after')::bigint;
  v_at bigint := tollgate_now();
BEGIN
  IF op->>'kind' = 'task_sending' THEN
    UPDATE task SET state = 1, provider = op->>'provider', upstream_model = op->>'upstream_model',
      upstream_host = op->>'host', upstream_key = op->>'key', due_at = v_due
      WHERE call_id = v_task AND state < 2 AND fence = (op->>'fence')::bigint;
  ELSIF op->>'upstream_id' IS NOT NULL THEN
    RETURN tollgate_name_task(op, v_due);
  ELSE
    UPDATE task SET state = (op->>'state')::smallint, progress = coalesce((op->>'progress')::smallint, progress),
      checked_at = CASE WHEN (op->>'checked')::boolean THEN v_at ELSE checked_at END,
      unknown_since = CASE WHEN (op->>'state') = '4' THEN coalesce(unknown_since, v_at) END,
      heard = coalesce((op->>'heard')::smallint, heard),
      absent_since = CASE WHEN op->>'absent' IS NULL THEN absent_since
        WHEN (op->>'absent')::boolean THEN coalesce(absent_since, v_at) END,
      made_since = CASE WHEN (op->>'made')::boolean THEN coalesce(made_since, v_at) ELSE made_since END,
      due_at = v_due, leased = false, quiet = (op->>'quiet')::boolean
      WHERE call_id = v_task AND state < 5 AND leased AND fence = (op->>'fence')::bigint;
    IF NOT FOUND AND (op->>'again')::boolean THEN
      PERFORM 1 FROM task WHERE call_id = v_task AND NOT leased AND fence = (op->>'fence')::bigint;
    END IF;
  END IF;
  RETURN CASE WHEN FOUND THEN 'done' ELSE 'stale' END;
END $$;

-- Whether a close may end its task: NULL, or what it answers instead.
CREATE OR REPLACE FUNCTION tollgate_task_ends(op jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  t task%ROWTYPE;
BEGIN
  SELECT * INTO t FROM task WHERE call_id = (op->>'call')::bytea FOR UPDATE;
  IF NOT FOUND OR t.fence <> (op->'task'->>'fence')::bigint THEN
    RETURN 'stale';
  ELSIF t.state >= 5 THEN
    RETURN CASE WHEN (op->>'again')::boolean AND t.state = (op->'task'->>'state')::smallint THEN 'closed' ELSE 'stale' END;
  ELSIF NOT t.leased THEN
    RETURN 'stale';
  END IF;
  RETURN NULL;
END $$;

-- The end of a task, with its close.
CREATE OR REPLACE FUNCTION tollgate_end_task(op jsonb, v_at bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_state smallint := (op->'task'->>'state')::smallint;
BEGIN
  UPDATE task SET state = v_state, result = op->'task'->>'result', failure_code = op->'task'->>'failure_code',
    failure_message = op->'task'->>'failure_message', ended_at = tollgate_now(), leased = false,
    progress = CASE WHEN v_state = 5 THEN 100 ELSE progress END
    WHERE call_id = (op->>'call')::bytea;
  IF op->'task'->>'webhook_url' IS NOT NULL THEN
    INSERT INTO webhook (call_id, account_id, url, created_at, due_at)
    VALUES ((op->>'call')::bytea, (op->>'account')::bytea, op->'task'->>'webhook_url', v_at, tollgate_now())
    ON CONFLICT DO NOTHING;
  END IF;
END $$;

-- Turns of a line that follow each other, as `turns.rs` gives them: microseconds until the first, and how many.
CREATE OR REPLACE FUNCTION tollgate_turns(of_line text, every bigint, wanted bigint, patience bigint,
  OUT after_us bigint, OUT given bigint) LANGUAGE plpgsql AS $$
DECLARE
  v_now bigint;
  v_next bigint;
BEGIN
  INSERT INTO turn (line, next_us) VALUES (of_line, 0) ON CONFLICT DO NOTHING;
  SELECT next_us INTO v_next FROM turn WHERE line = of_line FOR UPDATE;
  v_now := extract(epoch FROM clock_timestamp()) * 1000000;
  -- A clock that was set back would leave turns far ahead.
  IF v_next > v_now + 60000000 THEN v_next := v_now; END IF;
  v_next := greatest(v_next, v_now);
  after_us := v_next - v_now;
  given := 0;
  IF after_us <= patience THEN
    given := least((patience - after_us) / every + 1, wanted);
    UPDATE turn SET next_us = v_next + every * given WHERE line = of_line;
  END IF;
END $$;
