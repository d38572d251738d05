-- Calls that the gateway makes by itself along routes without traffic: in route_health beside those of customers. `probe_claim` has
-- when the routes of a model were last taken to be probed, so that no two replicas do it; `probe_day` what a day has cost.
ALTER TABLE route_health ADD COLUMN probes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE route_health ADD COLUMN good_probes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE route_health ADD COLUMN probed_at INTEGER NOT NULL DEFAULT 0;
CREATE TABLE probe_claim (
  model TEXT NOT NULL PRIMARY KEY,
  claimed_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE probe_day (
  day INTEGER NOT NULL PRIMARY KEY,
  calls INTEGER NOT NULL,
  nano_usd INTEGER NOT NULL
) WITHOUT ROWID;
