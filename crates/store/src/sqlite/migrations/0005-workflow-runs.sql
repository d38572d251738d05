-- Runs of workflows. Plan, state and wish are texts that this room does not read. Without `due_at` nothing is to be done.
CREATE TABLE workflow_run (
  id BLOB PRIMARY KEY NOT NULL,
  account_id BLOB NOT NULL REFERENCES account (id),
  key_id BLOB NOT NULL REFERENCES key (id),
  slug TEXT NOT NULL,
  idem BLOB,
  fingerprint BLOB,
  plan TEXT NOT NULL,
  state TEXT NOT NULL,
  status TEXT NOT NULL,
  wish TEXT,
  fence INTEGER NOT NULL,
  due_at INTEGER,
  leased_until INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  ended_at INTEGER
);
CREATE INDEX workflow_run_account ON workflow_run (account_id, id);
CREATE UNIQUE INDEX workflow_run_idem ON workflow_run (account_id, idem) WHERE idem IS NOT NULL;
CREATE INDEX workflow_run_due ON workflow_run (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX workflow_run_end ON workflow_run (ended_at) WHERE ended_at IS NOT NULL;
-- Which calls are steps of which run.
CREATE TABLE workflow_call (
  call_id BLOB PRIMARY KEY NOT NULL,
  run_id BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX workflow_call_run ON workflow_call (run_id);
-- The moves of workflows are looked up every few seconds.
CREATE INDEX operator_event_workflow ON operator_event (subject, seq) WHERE substr(action, 1, 9) = 'workflow.';
