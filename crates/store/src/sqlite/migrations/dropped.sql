-- What of a request its provider did not get, because its format has nothing like it: names of fields, by commas.
ALTER TABLE usage ADD COLUMN dropped TEXT;
