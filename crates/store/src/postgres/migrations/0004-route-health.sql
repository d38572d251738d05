-- How routes do, by quarter of an hour. Without a provider: the calls of a model as its customers saw them. `accounts` is a set of bits.
CREATE TABLE route_health (
  quarter bigint NOT NULL,
  model text NOT NULL,
  provider text NOT NULL,
  upstream_model text NOT NULL,
  calls bigint NOT NULL,
  good bigint NOT NULL,
  accounts bigint NOT NULL,
  first_byte_ms bigint NOT NULL,
  last_at bigint NOT NULL,
  PRIMARY KEY (quarter, model, provider, upstream_model)
);
