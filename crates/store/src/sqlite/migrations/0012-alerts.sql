-- Alerts: where operators hear of trouble, what is watched, what fires now, what fired, and what is still to be sent. A place is sealed by
-- the secrets file, because addresses of chats are secrets. A row of `alert_state` is there while a rule fires for its subject.
CREATE TABLE alert_place (
  id BLOB NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  shown TEXT NOT NULL,
  sealed BLOB NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE alert_rule (
  id BLOB NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  condition TEXT NOT NULL,
  places TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  silenced_until INTEGER,
  silence_reason TEXT,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL
) WITHOUT ROWID;
-- `notified_at` is null while nobody was told: the rule was silenced then.
CREATE TABLE alert_state (
  rule_id BLOB NOT NULL,
  subject TEXT NOT NULL,
  since INTEGER NOT NULL,
  notified_at INTEGER,
  message TEXT NOT NULL,
  PRIMARY KEY (rule_id, subject)
) WITHOUT ROWID;
CREATE TABLE alert_event (
  id BLOB NOT NULL PRIMARY KEY,
  rule_id BLOB NOT NULL,
  subject TEXT NOT NULL,
  what TEXT NOT NULL,
  at INTEGER NOT NULL,
  message TEXT NOT NULL,
  sent INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX alert_event_rule ON alert_event (rule_id, at);
CREATE INDEX alert_event_at ON alert_event (at);
-- To a place of operators, or to the webhook of an account. `due_at` is null once it is over.
CREATE TABLE alert_delivery (
  id BLOB NOT NULL PRIMARY KEY,
  event_id BLOB NOT NULL,
  place_id BLOB,
  account_id BLOB,
  news TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  due_at INTEGER,
  tries INTEGER NOT NULL,
  status INTEGER,
  outcome TEXT
) WITHOUT ROWID;
CREATE INDEX alert_delivery_due ON alert_delivery (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX alert_delivery_event ON alert_delivery (event_id);
CREATE INDEX alert_delivery_created ON alert_delivery (created_at);
-- When somebody last looked, so that of all replicas one does.
CREATE TABLE alert_turn (
  name TEXT NOT NULL PRIMARY KEY,
  at INTEGER NOT NULL
) WITHOUT ROWID;
-- What only one replica can see of itself, such as its disk.
CREATE TABLE alert_fact (
  name TEXT NOT NULL,
  replica TEXT NOT NULL,
  value INTEGER NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (name, replica)
) WITHOUT ROWID;
-- Accounts that want to hear of a low balance. `low_at` is null while it is not low; `sent` counts those of the day.
CREATE TABLE balance_notice (
  account_id BLOB NOT NULL PRIMARY KEY,
  threshold INTEGER NOT NULL,
  mail INTEGER NOT NULL,
  webhook INTEGER NOT NULL,
  low_at INTEGER,
  day INTEGER NOT NULL,
  sent INTEGER NOT NULL,
  last_sent_at INTEGER,
  changed_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX task_unknown ON task (unknown_since) WHERE unknown_since IS NOT NULL;
CREATE INDEX key_ends ON key (account_id, expires_at) WHERE expires_at IS NOT NULL AND revoked_at IS NULL;
