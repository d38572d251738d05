-- Keys that sign receipts: one has no end and signs, the others only verify. The secret of a key that has ended is erased.
CREATE TABLE receipt_key (
  public BLOB PRIMARY KEY NOT NULL,
  secret BLOB,
  from_at INTEGER NOT NULL,
  until_at INTEGER,
  CHECK ((until_at IS NULL) = (secret IS NOT NULL))
) WITHOUT ROWID;
CREATE UNIQUE INDEX receipt_key_signs ON receipt_key ((1)) WHERE until_at IS NULL;
