-- Calls that found nothing, which cost the operator: what is not asked again for a while, and who asked.
CREATE TABLE social_vain (
  call_id BLOB PRIMARY KEY,
  question BLOB NOT NULL,
  account_id BLOB NOT NULL,
  at INTEGER NOT NULL,
  until INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX social_vain_at ON social_vain (at);
