-- Open holds whose entry is before `oldest_open_seq`: a start reads these one by one and the ledger from there on, however long they stay open.
CREATE TABLE old_hold (
  call_id BLOB PRIMARY KEY NOT NULL
) WITHOUT ROWID;
