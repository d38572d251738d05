-- Where a task was sent: the provider's host, and a fingerprint of the key (never the key), so that nobody else is asked for it.
-- NULL in tasks of earlier versions.
ALTER TABLE task ADD COLUMN upstream_host text;
ALTER TABLE task ADD COLUMN upstream_key text;
-- Whether an entry of a provider's list is a task of ours, and which of ours have no name there.
CREATE INDEX task_upstream ON task (upstream_id) WHERE upstream_id IS NOT NULL;
CREATE INDEX task_nameless ON task (created_at) WHERE upstream_id IS NULL;
