CREATE TABLE social_change (
  seq INTEGER PRIMARY KEY,
  model TEXT NOT NULL,
  paused INTEGER NOT NULL,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  reason TEXT NOT NULL
);
CREATE INDEX social_change_model ON social_change (model, seq);

-- Platform '' is all of them.
CREATE TABLE social_day (
  day INTEGER NOT NULL,
  platform TEXT NOT NULL,
  calls INTEGER NOT NULL,
  cost INTEGER NOT NULL,
  PRIMARY KEY (day, platform)
) WITHOUT ROWID;
