-- Files of exports that operators began, in pieces, so that every replica can hand them out. Until `whole` is 1 nobody sees one.
CREATE TABLE export_file (
  job_id text PRIMARY KEY,
  bytes bigint NOT NULL,
  pieces bigint NOT NULL,
  whole bigint NOT NULL,
  until bigint NOT NULL
);
CREATE TABLE export_piece (
  job_id text NOT NULL,
  number bigint NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (job_id, number)
);
-- What owners of an account are to be told of it, until somebody has written the letters: each once, however often it happens meanwhile.
CREATE TABLE account_letter (
  account_id bytea NOT NULL,
  about text NOT NULL,
  at bigint NOT NULL,
  PRIMARY KEY (account_id, about)
);
