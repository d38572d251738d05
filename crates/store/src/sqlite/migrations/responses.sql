-- What a later request may name: responses, and conversations with their items. Texts are opaque to the store.
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
