-- What a later request may name: responses, and conversations with their items. Texts are opaque to the store.
CREATE TABLE response (
  account_id bytea NOT NULL,
  id text NOT NULL,
  previous text,
  conversation text,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  bytes bigint NOT NULL,
  input text NOT NULL,
  object text NOT NULL,
  PRIMARY KEY (account_id, id)
);
CREATE INDEX response_due ON response (expires_at);

CREATE TABLE response_item (
  account_id bytea NOT NULL,
  id text NOT NULL,
  response_id text NOT NULL,
  PRIMARY KEY (account_id, id)
);
CREATE INDEX response_item_of ON response_item (account_id, response_id);

CREATE TABLE conversation (
  account_id bytea NOT NULL,
  id text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  metadata text NOT NULL,
  PRIMARY KEY (account_id, id)
);
CREATE INDEX conversation_due ON conversation (expires_at);

-- In the order of seq.
CREATE TABLE conversation_item (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id bytea NOT NULL,
  conversation text NOT NULL,
  id text NOT NULL,
  item text NOT NULL,
  UNIQUE (account_id, conversation, id)
);
CREATE INDEX conversation_item_of ON conversation_item (account_id, conversation, seq);
