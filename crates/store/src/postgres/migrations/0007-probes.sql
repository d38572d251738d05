-- Calls that the gateway makes by itself along routes without traffic: in route_health beside those of customers. `probe_claim` has
-- when the routes of a model were last taken to be probed, so that no two replicas do it; `probe_day` what a day has cost.
ALTER TABLE route_health ADD COLUMN probes bigint NOT NULL DEFAULT 0;
ALTER TABLE route_health ADD COLUMN good_probes bigint NOT NULL DEFAULT 0;
ALTER TABLE route_health ADD COLUMN probed_at bigint NOT NULL DEFAULT 0;
CREATE TABLE probe_claim (
  model text NOT NULL PRIMARY KEY,
  claimed_at bigint NOT NULL
);
CREATE TABLE probe_day (
  day bigint NOT NULL PRIMARY KEY,
  calls bigint NOT NULL,
  nano_usd bigint NOT NULL
);
