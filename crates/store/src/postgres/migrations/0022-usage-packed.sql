-- Quarters of accounts once more, those of a day in one row (sums/days.rs): for questions by hour about all accounts. Rows are read as they are:
-- to unpack them twice would take as long as the rest.
CREATE TABLE usage_day_packed (
  day bigint NOT NULL,
  account_id bytea NOT NULL,
  key_id bytea NOT NULL,
  model text COLLATE "C" NOT NULL,
  endpoint text COLLATE "C" NOT NULL,
  ending smallint NOT NULL,
  provider text COLLATE "C" NOT NULL,
  upstream_model text COLLATE "C" NOT NULL,
  quarters bytea NOT NULL
) WITH (toast_tuple_target = 8160);
CREATE INDEX usage_day_packed_day ON usage_day_packed (day);
-- Quarters before this one are packed, but for days that were touched. It is never after that of usage_folded. Earlier versions fold days and
-- know nothing of this, so that it has a place and touches of its own.
CREATE TABLE usage_packed (
  one integer PRIMARY KEY CHECK (one = 1),
  until bigint NOT NULL
);
INSERT INTO usage_packed VALUES (1, 0);
CREATE TABLE usage_packed_touched (
  day bigint NOT NULL
);
CREATE INDEX usage_packed_touched_day ON usage_packed_touched (day);

-- As in 0017, and for packed days.
CREATE OR REPLACE FUNCTION usage_touch() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_first bytea;
  v_before bytea;
BEGIN
  SELECT f.first_call, b.first_call INTO v_first, v_before FROM usage_folded f, usage_fold b WHERE f.one = 1 AND b.one = 1;
  -- Most statements are about calls of this block, and no more than this is asked of them.
  IF NOT EXISTS (SELECT 1 FROM changed WHERE call_id < greatest(v_first, v_before)) THEN
    RETURN NULL;
  END IF;
  INSERT INTO usage_day_touched SELECT DISTINCT usage_quarter_of(call_id) / 96 FROM changed WHERE call_id < v_first;
  INSERT INTO usage_packed_touched SELECT DISTINCT usage_quarter_of(call_id) / 96 FROM changed WHERE call_id < v_first;
  INSERT INTO usage_touched SELECT DISTINCT usage_quarter_of(call_id) / 96 FROM changed WHERE call_id < v_before;
  RETURN NULL;
END $$;
