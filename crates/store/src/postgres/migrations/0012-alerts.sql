-- Alerts: where operators hear of trouble, what is watched, what fires now, what fired, and what is still to be sent. A place is sealed by
-- the secrets file, because addresses of chats are secrets. A row of `alert_state` is there while a rule fires for its subject.
CREATE TABLE alert_place (
  id bytea PRIMARY KEY,
  name text NOT NULL,
  kind text NOT NULL,
  shown text NOT NULL,
  sealed bytea NOT NULL,
  created_at bigint NOT NULL
);
CREATE TABLE alert_rule (
  id bytea PRIMARY KEY,
  name text NOT NULL,
  condition text NOT NULL,
  places text NOT NULL,
  enabled bigint NOT NULL,
  silenced_until bigint,
  silence_reason text,
  created_at bigint NOT NULL,
  changed_at bigint NOT NULL
);
-- `notified_at` is null while nobody was told: the rule was silenced then.
CREATE TABLE alert_state (
  rule_id bytea NOT NULL,
  subject text NOT NULL,
  since bigint NOT NULL,
  notified_at bigint,
  message text NOT NULL,
  PRIMARY KEY (rule_id, subject)
);
CREATE TABLE alert_event (
  id bytea PRIMARY KEY,
  rule_id bytea NOT NULL,
  subject text NOT NULL,
  what text NOT NULL,
  at bigint NOT NULL,
  message text NOT NULL,
  sent bigint NOT NULL
);
CREATE INDEX alert_event_rule ON alert_event (rule_id, at);
CREATE INDEX alert_event_at ON alert_event (at);
-- To a place of operators, or to the webhook of an account. `due_at` is null once it is over.
CREATE TABLE alert_delivery (
  id bytea PRIMARY KEY,
  event_id bytea NOT NULL,
  place_id bytea,
  account_id bytea,
  news text NOT NULL,
  created_at bigint NOT NULL,
  due_at bigint,
  tries bigint NOT NULL,
  status bigint,
  outcome text
);
CREATE INDEX alert_delivery_due ON alert_delivery (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX alert_delivery_event ON alert_delivery (event_id);
CREATE INDEX alert_delivery_created ON alert_delivery (created_at);
-- When somebody last looked, so that of all replicas one does.
CREATE TABLE alert_turn (
  name text PRIMARY KEY,
  at bigint NOT NULL
);
-- What only one replica can see of itself, such as its disk.
CREATE TABLE alert_fact (
  name text NOT NULL,
  replica text NOT NULL,
  value bigint NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (name, replica)
);
-- Accounts that want to hear of a low balance. `low_at` is null while it is not low; `sent` counts those of the day.
CREATE TABLE balance_notice (
  account_id bytea PRIMARY KEY,
  threshold bigint NOT NULL,
  mail bigint NOT NULL,
  webhook bigint NOT NULL,
  low_at bigint,
  day bigint NOT NULL,
  sent bigint NOT NULL,
  last_sent_at bigint,
  changed_at bigint NOT NULL
);
CREATE INDEX task_unknown ON task (unknown_since) WHERE unknown_since IS NOT NULL;
CREATE INDEX key_ends ON key (account_id, expires_at) WHERE expires_at IS NOT NULL AND revoked_at IS NULL;
