-- Money that customers pay in. An order is written before anybody is asked for money; `record` has all of it, the columns beside
-- it what is looked for and summed. `pay_event` is the news of payment providers, until somebody has looked.
CREATE TABLE pay_order (
  id bytea PRIMARY KEY,
  account_id bytea NOT NULL REFERENCES account (id),
  provider text NOT NULL,
  state text NOT NULL,
  amount_minor bigint NOT NULL CHECK (amount_minor > 0),
  currency text NOT NULL,
  credit bigint NOT NULL CHECK (credit > 0),
  taken bigint NOT NULL CHECK (taken BETWEEN 0 AND credit),
  owed bigint NOT NULL CHECK (owed >= 0 AND taken + owed <= credit),
  session text,
  payment text,
  created_at bigint NOT NULL,
  next_look_at bigint,
  idem bytea,
  fingerprint bytea,
  version bigint NOT NULL,
  record text NOT NULL
);
CREATE INDEX pay_order_account ON pay_order (account_id, id);
CREATE UNIQUE INDEX pay_order_session ON pay_order (provider, session) WHERE session IS NOT NULL;
CREATE INDEX pay_order_payment ON pay_order (provider, payment) WHERE payment IS NOT NULL;
CREATE INDEX pay_order_look ON pay_order (next_look_at) WHERE next_look_at IS NOT NULL;
CREATE INDEX pay_order_owed ON pay_order (account_id) WHERE owed > 0;
CREATE UNIQUE INDEX pay_order_idem ON pay_order (account_id, idem) WHERE idem IS NOT NULL;
CREATE TABLE pay_event (
  provider text NOT NULL,
  id text NOT NULL,
  kind text NOT NULL,
  order_id bytea,
  subject text,
  received_at bigint NOT NULL,
  tries bigint NOT NULL DEFAULT 0,
  next_at bigint,
  done_at bigint,
  outcome text,
  PRIMARY KEY (provider, id)
);
CREATE INDEX pay_event_next ON pay_event (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX pay_event_done ON pay_event (done_at) WHERE done_at IS NOT NULL;
-- Redemption codes, as hashes.
CREATE TABLE code_batch (
  id bytea PRIMARY KEY,
  amount bigint NOT NULL CHECK (amount > 0),
  trial boolean NOT NULL,
  count bigint NOT NULL,
  per_account bigint NOT NULL,
  ends_at bigint,
  note text NOT NULL,
  created_at bigint NOT NULL,
  actor text NOT NULL,
  revoked_at bigint
);
CREATE TABLE code (
  hash bytea PRIMARY KEY,
  batch_id bytea NOT NULL REFERENCES code_batch (id),
  used_by bytea,
  used_at bigint
);
CREATE INDEX code_used ON code (batch_id, used_by) WHERE used_by IS NOT NULL;
