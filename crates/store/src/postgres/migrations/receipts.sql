-- Keys that sign receipts, shared by all replicas: one has no end and signs, the others only verify. The secret of a key
-- that has ended is erased.
CREATE TABLE receipt_key (
  public bytea PRIMARY KEY,
  secret bytea,
  from_at bigint NOT NULL,
  until_at bigint,
  CHECK ((until_at IS NULL) = (secret IS NOT NULL))
);
CREATE UNIQUE INDEX receipt_key_signs ON receipt_key ((1)) WHERE until_at IS NULL;
