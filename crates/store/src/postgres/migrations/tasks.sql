-- Video tasks, as in SQLite, plus what several replicas need: times to come are by the clock of the database, and whoever
-- takes a task leaves its name and counts the fence up.
CREATE TABLE task (
  call_id bytea PRIMARY KEY,
  account_id bytea NOT NULL,
  key_id bytea NOT NULL,
  endpoint text NOT NULL,
  model text NOT NULL,
  provider text,
  upstream_model text,
  upstream_id text,
  state smallint NOT NULL,
  progress smallint,
  plan text NOT NULL,
  result text,
  failure_code text,
  failure_message text,
  webhook_url text,
  created_at bigint NOT NULL,
  checked_at bigint,
  unknown_since bigint,
  ended_at bigint,
  price_id bytea NOT NULL,
  hidden boolean NOT NULL DEFAULT false,
  due_at bigint NOT NULL,
  fence bigint NOT NULL DEFAULT 1,
  leased boolean NOT NULL DEFAULT true,
  owner bytea NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX task_account ON task (account_id, call_id);
CREATE INDEX task_open ON task (due_at) WHERE state < 5;
CREATE INDEX task_owner ON task (owner) WHERE leased AND state < 5;
-- The hold of a task outlives the replica that took it.
ALTER TABLE open_hold ADD COLUMN task boolean NOT NULL DEFAULT false;

CREATE TABLE webhook (
  call_id bytea PRIMARY KEY,
  account_id bytea NOT NULL,
  url text NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  created_at bigint NOT NULL,
  due_at bigint NOT NULL,
  fence bigint NOT NULL DEFAULT 0
);
CREATE INDEX webhook_due ON webhook (due_at);
