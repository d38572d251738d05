-- Calls that found nothing, which cost the operator: what is not asked again for a while, and who asked.
CREATE TABLE social_vain (
  call_id bytea PRIMARY KEY,
  question bytea NOT NULL,
  account_id bytea NOT NULL,
  at bigint NOT NULL,
  until bigint NOT NULL
);
CREATE INDEX social_vain_at ON social_vain (at);

-- The last beginnings on a route, in milliseconds of the database's clock, which all replicas share. Lost in a crash of
-- the server without harm.
CREATE UNLOGGED TABLE social_pace (
  route text PRIMARY KEY,
  turns bigint[] NOT NULL
);

-- Milliseconds until the caller's turn, so that at most so many begin in any second; a negative number: it would be that
-- long, the line is full, and no turn was taken.
CREATE FUNCTION tollgate_social_turn(of_route text, per_second integer, patience bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  now_ms bigint;
  mine bigint;
  list bigint[];
BEGIN
  INSERT INTO social_pace (route, turns) VALUES (of_route, '{}') ON CONFLICT DO NOTHING;
  SELECT turns INTO list FROM social_pace WHERE route = of_route FOR UPDATE;
  now_ms := extract(epoch FROM clock_timestamp()) * 1000;
  -- A clock that was set back would leave turns far ahead.
  IF list[cardinality(list)] > now_ms + 60000 THEN list := '{}'; END IF;
  list := list[greatest(cardinality(list) - per_second + 1, 1):];
  mine := greatest(now_ms, coalesce(list[cardinality(list)], now_ms));
  IF cardinality(list) = per_second THEN mine := greatest(mine, list[1] + 1000); END IF;
  IF mine - now_ms > patience THEN RETURN now_ms - mine; END IF;
  UPDATE social_pace SET turns = list || mine WHERE route = of_route;
  RETURN mine - now_ms;
END $$;
