CREATE TABLE social_change (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  model text NOT NULL,
  paused boolean NOT NULL,
  at bigint NOT NULL,
  actor text NOT NULL,
  reason text NOT NULL
);
CREATE INDEX social_change_model ON social_change (model, seq);

-- Platform '' is all of them.
CREATE TABLE social_day (
  day bigint NOT NULL,
  platform text NOT NULL,
  calls bigint NOT NULL DEFAULT 0,
  cost bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (day, platform)
);

-- Takes a call's part of a day, or says which limit was met. Both rows are locked in one order, that of all platforms first,
-- and so they are where a cost is given back: replicas wait for each other but never in a circle.
CREATE FUNCTION tollgate_social_take(
  of_day bigint, of_platform text, more bigint,
  all_calls bigint, all_cost bigint, own_calls bigint, own_cost bigint
) RETURNS smallint LANGUAGE plpgsql AS $$
DECLARE
  whole social_day;
  own social_day;
BEGIN
  INSERT INTO social_day (day, platform) VALUES (of_day, ''), (of_day, of_platform) ON CONFLICT DO NOTHING;
  SELECT * INTO whole FROM social_day WHERE day = of_day AND platform = '' FOR UPDATE;
  SELECT * INTO own FROM social_day WHERE day = of_day AND platform = of_platform FOR UPDATE;
  IF whole.calls + 1 > all_calls THEN RETURN 1; END IF;
  IF whole.cost + more > all_cost THEN RETURN 2; END IF;
  IF own.calls + 1 > own_calls THEN RETURN 3; END IF;
  IF own.cost + more > own_cost THEN RETURN 4; END IF;
  UPDATE social_day SET calls = calls + 1, cost = cost + more
    WHERE day = of_day AND platform IN ('', of_platform);
  RETURN 0;
END $$;
