-- Runs of workflows. Plan, state and wish are texts that this room does not read. Without `due_at` nothing is to be done.
CREATE TABLE workflow_run (
  id bytea PRIMARY KEY,
  account_id bytea NOT NULL REFERENCES account (id),
  key_id bytea NOT NULL REFERENCES key (id),
  slug text NOT NULL,
  idem bytea,
  fingerprint bytea,
  plan text NOT NULL,
  state text NOT NULL,
  status text NOT NULL,
  wish text,
  fence bigint NOT NULL,
  due_at bigint,
  leased_until bigint NOT NULL,
  created_at bigint NOT NULL,
  changed_at bigint NOT NULL,
  ended_at bigint
);
CREATE INDEX workflow_run_account ON workflow_run (account_id, id);
CREATE UNIQUE INDEX workflow_run_idem ON workflow_run (account_id, idem) WHERE idem IS NOT NULL;
CREATE INDEX workflow_run_due ON workflow_run (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX workflow_run_end ON workflow_run (ended_at) WHERE ended_at IS NOT NULL;
-- Which calls are steps of which run.
CREATE TABLE workflow_call (
  call_id bytea PRIMARY KEY,
  run_id bytea NOT NULL
);
CREATE INDEX workflow_call_run ON workflow_call (run_id);
-- The moves of workflows are looked up every few seconds.
CREATE INDEX operator_event_workflow ON operator_event (subject, seq) WHERE starts_with(action, 'workflow.');

-- Begins a run: 1 made, 2 too many are open, 3 there is one with this Idempotency-Key. Two of one account wait for each
-- other, so that counts are exact over all replicas.
CREATE FUNCTION tollgate_workflow_run(
  of_id bytea, of_account bytea, of_key bytea, of_slug text, of_idem bytea, of_fingerprint bytea, of_plan text,
  of_state text, of_status text, made_at bigint, open_most bigint, stored_most bigint
) RETURNS smallint LANGUAGE plpgsql AS $$
DECLARE
  of_all bigint;
  of_open bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('workflow_run ' || encode(of_account, 'hex'), 0));
  IF of_idem IS NOT NULL AND EXISTS (SELECT 1 FROM workflow_run WHERE account_id = of_account AND idem = of_idem) THEN
    RETURN 3;
  END IF;
  SELECT count(*), count(*) FILTER (WHERE ended_at IS NULL) INTO of_all, of_open FROM workflow_run
    WHERE account_id = of_account;
  IF of_open >= open_most THEN RETURN 2; END IF;
  IF of_all >= stored_most THEN
    DELETE FROM workflow_run WHERE id IN (SELECT id FROM workflow_run
      WHERE account_id = of_account AND ended_at IS NOT NULL ORDER BY id LIMIT of_all - stored_most + 1);
  END IF;
  INSERT INTO workflow_run (id, account_id, key_id, slug, idem, fingerprint, plan, state, status, fence, due_at,
    leased_until, created_at, changed_at) VALUES (of_id, of_account, of_key, of_slug, of_idem, of_fingerprint, of_plan,
    of_state, of_status, 0, made_at, 0, made_at, made_at);
  RETURN 1;
END $$;
