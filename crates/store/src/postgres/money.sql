-- Money that customers pay in: an order's step and a code's use, each with its ledger entry in one transaction.

-- Makes an order: 1 made, 2 the caller's key is known, 3 too many open, 4 too many in an hour. Wishes of one account wait for each
-- other, so that both counts are exact over all replicas.
CREATE OR REPLACE FUNCTION tollgate_new_order(v_id bytea, v_account bytea, v_provider text, v_amount bigint, v_currency text,
  v_credit bigint, v_at bigint, v_look bigint, v_idem bytea, v_print bytea, v_record text, v_most_open bigint, v_most_hour bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  v_open bigint;
  v_hour bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('pay_order ' || encode(v_account, 'hex'), 0));
  IF v_idem IS NOT NULL AND EXISTS (SELECT 1 FROM pay_order WHERE account_id = v_account AND idem = v_idem) THEN RETURN 2; END IF;
  SELECT count(*) FILTER (WHERE state IN ('new', 'pending') AND (record::jsonb ->> 'expires_at_ms')::bigint > v_at),
    count(*) FILTER (WHERE created_at > v_at - 3600000) INTO v_open, v_hour FROM pay_order WHERE account_id = v_account;
  IF v_open >= v_most_open THEN RETURN 3; END IF;
  IF v_hour >= v_most_hour THEN RETURN 4; END IF;
  INSERT INTO pay_order (id, account_id, provider, state, amount_minor, currency, credit, taken, owed, created_at, next_look_at,
    idem, fingerprint, version, record)
  VALUES (v_id, v_account, v_provider, 'new', v_amount, v_currency, v_credit, 0, 0, v_at, v_look, v_idem, v_print, 1, v_record);
  RETURN 1;
END $$;

-- The order as it is afterwards, and what enters the ledger with it: `done`, `stale` where somebody else has changed it, or why the
-- ledger did not take it.
CREATE OR REPLACE FUNCTION tollgate_order_step(v_id bytea, v_version bigint, v_state text, v_taken bigint, v_owed bigint,
  v_session text, v_payment text, v_look bigint, v_record text, v_op bytea, v_kind smallint, v_account bytea, v_amount bigint,
  v_at bigint, v_reference text, v_actor text, v_reason text, v_most bigint, v_sure bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  v_done text;
BEGIN
  PERFORM 1 FROM pay_order WHERE id = v_id AND version = v_version - 1 FOR UPDATE;
  IF NOT FOUND THEN RETURN 'stale'; END IF;
  IF v_op IS NOT NULL THEN
    v_done := tollgate_credit(v_op, v_kind, v_account, NULL, false, v_amount, v_at, v_reference, v_actor, v_reason, NULL, v_most, v_sure);
    IF v_done NOT IN ('applied', 'before') THEN RETURN v_done; END IF;
  END IF;
  UPDATE pay_order SET state = v_state, taken = v_taken, owed = v_owed, session = v_session, payment = v_payment,
    next_look_at = v_look, version = v_version, record = v_record WHERE id = v_id;
  RETURN 'done';
END $$;

-- Uses a code: `done`; `used` by this account before; `enough` of the batch; `unknown`; or why the ledger did not take it.
CREATE OR REPLACE FUNCTION tollgate_redeem(v_hash bytea, v_account bytea, v_now bigint, v_op bytea, v_reference text, v_actor text,
  v_reason text, v_most bigint, v_sure bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  k code%ROWTYPE;
  b code_batch%ROWTYPE;
  v_done text;
BEGIN
  -- The batch first: uses of one batch by one account are counted exactly.
  PERFORM pg_advisory_xact_lock(hashtextextended('codes ' || encode(v_account, 'hex'), 0));
  SELECT * INTO k FROM code WHERE hash = v_hash FOR UPDATE;
  IF NOT FOUND THEN RETURN 'unknown'; END IF;
  SELECT * INTO b FROM code_batch WHERE id = k.batch_id;
  IF k.used_by = v_account THEN RETURN 'used'; END IF;
  IF k.used_by IS NOT NULL OR b.revoked_at IS NOT NULL OR b.ends_at <= v_now THEN RETURN 'unknown'; END IF;
  IF (SELECT count(*) FROM code o WHERE o.batch_id = b.id AND o.used_by = v_account) >= b.per_account THEN RETURN 'enough'; END IF;
  v_done := tollgate_credit(v_op, 6::smallint, v_account, NULL, b.trial, b.amount, v_now, v_reference, v_actor, v_reason, NULL, v_most, v_sure);
  IF v_done NOT IN ('applied', 'before') THEN RETURN v_done; END IF;
  UPDATE code SET used_by = v_account, used_at = v_now WHERE hash = v_hash;
  RETURN 'done';
END $$;
