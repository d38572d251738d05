-- What customers store beside the ledger, in a file of its own, whole: responses, and conversations with their items. Texts are opaque
-- to the store. Later changes are numbered files beside this one (migrations/0002-….sql); see migration.rs.

-- The migrations that have run: 1 is this file.
CREATE TABLE migration (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  -- Of its words; comments and spacing do not count.
  fingerprint TEXT NOT NULL
);

CREATE TABLE response (
  account_id BLOB NOT NULL,
  id TEXT NOT NULL,
  previous TEXT,
  conversation TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  input TEXT NOT NULL,
  object TEXT NOT NULL,
  PRIMARY KEY (account_id, id)
);
CREATE INDEX response_due ON response (expires_at);

CREATE TABLE response_item (
  account_id BLOB NOT NULL,
  id TEXT NOT NULL,
  response_id TEXT NOT NULL,
  PRIMARY KEY (account_id, id)
) WITHOUT ROWID;
CREATE INDEX response_item_of ON response_item (account_id, response_id);

CREATE TABLE conversation (
  account_id BLOB NOT NULL,
  id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  metadata TEXT NOT NULL,
  PRIMARY KEY (account_id, id)
);
CREATE INDEX conversation_due ON conversation (expires_at);

-- In the order of seq.
CREATE TABLE conversation_item (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id BLOB NOT NULL,
  conversation TEXT NOT NULL,
  id TEXT NOT NULL,
  item TEXT NOT NULL,
  UNIQUE (account_id, conversation, id)
);
CREATE INDEX conversation_item_of ON conversation_item (account_id, conversation, seq);
CREATE INDEX conversation_item_named ON conversation_item (account_id, id);

-- How much of it there is, of each account and, under an empty id, of all. Whoever writes sees to it that both rows are there; the
-- triggers count. 512 is ROW_BYTES of quota.rs.
CREATE TABLE stored (
  account_id BLOB PRIMARY KEY NOT NULL,
  bytes INTEGER NOT NULL DEFAULT 0,
  objects INTEGER NOT NULL DEFAULT 0,
  items INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
INSERT INTO stored (account_id) VALUES (x'');

CREATE TRIGGER response_in AFTER INSERT ON response BEGIN
  UPDATE stored SET bytes = bytes + 512 + octet_length(NEW.id) + NEW.bytes, objects = objects + 1
    WHERE account_id IN (NEW.account_id, x'');
END;
CREATE TRIGGER response_out AFTER DELETE ON response BEGIN
  UPDATE stored SET bytes = bytes - 512 - octet_length(OLD.id) - OLD.bytes, objects = objects - 1
    WHERE account_id IN (OLD.account_id, x'');
END;
CREATE TRIGGER response_item_in AFTER INSERT ON response_item BEGIN
  UPDATE stored SET bytes = bytes + 512 + octet_length(NEW.id) + octet_length(NEW.response_id), items = items + 1
    WHERE account_id IN (NEW.account_id, x'');
END;
CREATE TRIGGER response_item_out AFTER DELETE ON response_item BEGIN
  UPDATE stored SET bytes = bytes - 512 - octet_length(OLD.id) - octet_length(OLD.response_id), items = items - 1
    WHERE account_id IN (OLD.account_id, x'');
END;
CREATE TRIGGER conversation_in AFTER INSERT ON conversation BEGIN
  UPDATE stored SET bytes = bytes + 512 + octet_length(NEW.id) + octet_length(NEW.metadata), objects = objects + 1
    WHERE account_id IN (NEW.account_id, x'');
END;
CREATE TRIGGER conversation_changed AFTER UPDATE OF metadata ON conversation BEGIN
  UPDATE stored SET bytes = bytes + octet_length(NEW.metadata) - octet_length(OLD.metadata)
    WHERE account_id IN (NEW.account_id, x'');
END;
CREATE TRIGGER conversation_out AFTER DELETE ON conversation BEGIN
  UPDATE stored SET bytes = bytes - 512 - octet_length(OLD.id) - octet_length(OLD.metadata), objects = objects - 1
    WHERE account_id IN (OLD.account_id, x'');
END;
CREATE TRIGGER conversation_item_in AFTER INSERT ON conversation_item BEGIN
  UPDATE stored SET bytes = bytes + 512 + octet_length(NEW.conversation) + octet_length(NEW.id) + octet_length(NEW.item),
    items = items + 1 WHERE account_id IN (NEW.account_id, x'');
END;
CREATE TRIGGER conversation_item_out AFTER DELETE ON conversation_item BEGIN
  UPDATE stored SET bytes = bytes - 512 - octet_length(OLD.conversation) - octet_length(OLD.id) - octet_length(OLD.item),
    items = items - 1 WHERE account_id IN (OLD.account_id, x'');
END;
