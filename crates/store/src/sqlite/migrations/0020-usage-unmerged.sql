-- What groups of calls add to usage_quarter and is not in it yet, a row for each group (sqlite/unmerged.rs). Sums of several groups are merged
-- into usage_quarter at once; until then a sum is what is there and what is here.
CREATE TABLE usage_unmerged (
  number INTEGER PRIMARY KEY,
  sums BLOB NOT NULL
);
