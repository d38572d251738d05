-- The names of tasks at their providers, each at one host once, so that no task is ever taken for another's. Of tasks from before that
-- share a name the oldest has it. Tasks that do not tell their host are told apart by their provider.
CREATE TABLE task_name (
  home text NOT NULL,
  upstream_id text NOT NULL,
  call_id bytea NOT NULL,
  PRIMARY KEY (home, upstream_id)
);
INSERT INTO task_name (home, upstream_id, call_id)
  SELECT coalesce(upstream_host, provider, ''), upstream_id, call_id FROM task WHERE upstream_id IS NOT NULL
  ORDER BY created_at, call_id ON CONFLICT DO NOTHING;
