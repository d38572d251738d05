-- The names of the secrets that sign links and webhooks, which say nothing of the secrets themselves: whoever starts with others, or
-- with none, is told.
CREATE TABLE signing_secret (
  name TEXT PRIMARY KEY,
  seen_at bigint NOT NULL
);
