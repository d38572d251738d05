-- Catalogs that were published, by the hash of their text, and which of them is on sale. `catalog_version` has who published what, and why:
-- its rows stay, the texts of old ones go. Prices of charges do not depend on them: table price has those.
CREATE TABLE catalog_text (
  hash TEXT PRIMARY KEY NOT NULL,
  files TEXT NOT NULL,
  bytes INTEGER NOT NULL
);
CREATE TABLE catalog_version (
  number INTEGER PRIMARY KEY,
  hash TEXT NOT NULL,
  pricing_version TEXT NOT NULL,
  models INTEGER NOT NULL,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL,
  request_id TEXT,
  rolled_back_to INTEGER
);
CREATE TABLE catalog_current (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  number INTEGER NOT NULL,
  hash TEXT NOT NULL
);
-- What operators began and come back for. `seen_at` is when its replica last said that it runs.
CREATE TABLE operator_job (
  id TEXT PRIMARY KEY NOT NULL,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  actor TEXT NOT NULL,
  replica TEXT NOT NULL,
  asked TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  ended_at INTEGER,
  done INTEGER NOT NULL,
  total INTEGER NOT NULL,
  cancel INTEGER NOT NULL,
  result TEXT NOT NULL
);
CREATE INDEX operator_job_started ON operator_job (started_at);
-- Trial credit that was given by itself: once for a person, once for an address. It outlives the person.
CREATE TABLE trial_grant (
  person_id BLOB PRIMARY KEY NOT NULL,
  address_hash BLOB NOT NULL UNIQUE,
  account_id BLOB NOT NULL,
  block_hash BLOB NOT NULL,
  amount INTEGER NOT NULL CHECK (amount > 0),
  expires_at INTEGER,
  at INTEGER NOT NULL,
  day INTEGER NOT NULL,
  credited_at INTEGER
);
CREATE INDEX trial_grant_day ON trial_grant (day, block_hash);
CREATE INDEX trial_grant_open ON trial_grant (at) WHERE credited_at IS NULL;
