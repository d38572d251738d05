-- As on PostgreSQL, where replicas share the files of exports. Here there is one process, and they lie in its data folder.
CREATE TABLE export_file (
  job_id TEXT PRIMARY KEY NOT NULL,
  bytes INTEGER NOT NULL,
  pieces INTEGER NOT NULL,
  whole INTEGER NOT NULL,
  until INTEGER NOT NULL
);
CREATE TABLE export_piece (
  job_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (job_id, number)
);
-- What owners of an account are to be told of it, until somebody has written the letters: each once, however often it happens meanwhile.
CREATE TABLE account_letter (
  account_id BLOB NOT NULL,
  about TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (account_id, about)
);
