-- How routes do, by quarter of an hour. Without a provider: the calls of a model as its customers saw them. `accounts` is a set of bits.
CREATE TABLE route_health (
  quarter INTEGER NOT NULL,
  model TEXT NOT NULL,
  provider TEXT NOT NULL,
  upstream_model TEXT NOT NULL,
  calls INTEGER NOT NULL,
  good INTEGER NOT NULL,
  accounts INTEGER NOT NULL,
  first_byte_ms INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  PRIMARY KEY (quarter, model, provider, upstream_model)
) WITHOUT ROWID;
