-- Video tasks. A task is one call: its id is that of the call, its hold that of the call.
-- state: 0 held, 1 submitting, 2 queued, 3 running, 4 unknown, 5 completed, 6 failed, 7 refused.
CREATE TABLE task (
  call_id BLOB PRIMARY KEY NOT NULL,
  account_id BLOB NOT NULL,
  key_id BLOB NOT NULL,
  endpoint TEXT NOT NULL,
  model TEXT NOT NULL,
  provider TEXT,
  upstream_model TEXT,
  upstream_id TEXT,
  state INTEGER NOT NULL,
  progress INTEGER,
  plan TEXT NOT NULL,
  result TEXT,
  failure_code TEXT,
  failure_message TEXT,
  webhook_url TEXT,
  created_at INTEGER NOT NULL,
  checked_at INTEGER,
  unknown_since INTEGER,
  ended_at INTEGER,
  price_id BLOB NOT NULL,
  hidden INTEGER NOT NULL DEFAULT 0,
  due_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX task_account ON task (account_id, call_id);
CREATE INDEX task_open ON task (due_at) WHERE state < 5;

-- Who is still to be told about the end of a task.
CREATE TABLE webhook (
  call_id BLOB PRIMARY KEY NOT NULL,
  account_id BLOB NOT NULL,
  url TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  fence INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX webhook_due ON webhook (due_at);
