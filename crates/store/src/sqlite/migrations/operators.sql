-- Who may use the operator's API. The secret itself is never stored.
CREATE TABLE admin_key (
  id BLOB PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  prefix TEXT NOT NULL,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) WITHOUT ROWID;

-- What operators did besides money (which has its own rows in the ledger) and pauses (social_change).
CREATE TABLE operator_event (
  seq INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  subject TEXT NOT NULL,
  reason TEXT NOT NULL
);
CREATE TRIGGER operator_event_no_update BEFORE UPDATE ON operator_event
  BEGIN SELECT raise(ABORT, 'what was done is not changed'); END;
CREATE TRIGGER operator_event_no_delete BEFORE DELETE ON operator_event
  BEGIN SELECT raise(ABORT, 'what was done is not changed'); END;
CREATE TRIGGER social_change_no_update BEFORE UPDATE ON social_change
  BEGIN SELECT raise(ABORT, 'what was done is not changed'); END;
CREATE TRIGGER social_change_no_delete BEFORE DELETE ON social_change
  BEGIN SELECT raise(ABORT, 'what was done is not changed'); END;
