-- The hash of a usage row, as in SQLite.
ALTER TABLE usage ADD COLUMN hash bytea;
