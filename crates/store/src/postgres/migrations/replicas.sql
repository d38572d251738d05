-- Replicas judge each other by beats that go on, not by their clocks, and a call that one of them gave up in another's name
-- can still be charged when the other comes back.

-- When an open hold is past its time, by the clock of the database.
ALTER TABLE open_hold ADD COLUMN due_at bigint NOT NULL DEFAULT 0;
UPDATE open_hold SET due_at = expires_at;

-- Holds that were released by another replica than the one that took them, until that one says how the call ended.
CREATE TABLE lost_hold (
  call_id bytea PRIMARY KEY,
  account_id bytea NOT NULL,
  key_id bytea NOT NULL,
  held bigint NOT NULL,
  paid_only boolean NOT NULL,
  at bigint NOT NULL,
  expires_at bigint NOT NULL,
  price_id bytea NOT NULL,
  model text NOT NULL,
  endpoint text NOT NULL,
  key_hash bytea,
  fingerprint bytea,
  replica bytea NOT NULL,
  -- By the clock of the database.
  lost_at bigint NOT NULL
);
CREATE INDEX lost_hold_at ON lost_hold (lost_at);
