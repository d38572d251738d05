-- Catalogs that were published, by the hash of their text, and which of them is on sale. `catalog_version` has who published what, and why:
-- its rows stay, the texts of old ones go. Prices of charges do not depend on them: table price has those.
CREATE TABLE catalog_text (
  hash text PRIMARY KEY,
  files text NOT NULL,
  bytes bigint NOT NULL
);
CREATE TABLE catalog_version (
  number bigint PRIMARY KEY,
  hash text NOT NULL,
  pricing_version text NOT NULL,
  models bigint NOT NULL,
  at bigint NOT NULL,
  actor text NOT NULL,
  reason text NOT NULL,
  request_id text,
  rolled_back_to bigint
);
CREATE TABLE catalog_current (
  id bigint PRIMARY KEY CHECK (id = 1),
  number bigint NOT NULL,
  hash text NOT NULL
);
-- What operators began and come back for. `seen_at` is when its replica last said that it runs.
CREATE TABLE operator_job (
  id text PRIMARY KEY,
  kind text NOT NULL,
  state text NOT NULL,
  actor text NOT NULL,
  replica text NOT NULL,
  asked text NOT NULL,
  started_at bigint NOT NULL,
  seen_at bigint NOT NULL,
  ended_at bigint,
  done bigint NOT NULL,
  total bigint NOT NULL,
  cancel bigint NOT NULL,
  result text NOT NULL
);
CREATE INDEX operator_job_started ON operator_job (started_at);
-- Trial credit that was given by itself: once for a person, once for an address. It outlives the person.
CREATE TABLE trial_grant (
  person_id bytea PRIMARY KEY,
  address_hash bytea NOT NULL UNIQUE,
  account_id bytea NOT NULL,
  block_hash bytea NOT NULL,
  amount bigint NOT NULL CHECK (amount > 0),
  expires_at bigint,
  at bigint NOT NULL,
  day bigint NOT NULL,
  credited_at bigint
);
CREATE INDEX trial_grant_day ON trial_grant (day, block_hash);
CREATE INDEX trial_grant_open ON trial_grant (at) WHERE credited_at IS NULL;
