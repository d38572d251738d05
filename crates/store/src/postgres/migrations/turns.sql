-- The next free turn at each provider, in microseconds of the database's clock, which all replicas share. Lost in a crash of the
-- server without harm.
CREATE UNLOGGED TABLE turn (
  line text PRIMARY KEY,
  next_us bigint NOT NULL
) WITH (fillfactor = 50);
