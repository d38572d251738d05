-- The hash of a usage row (row_hash.rs). Where a call was ended by an entry, that entry carries it too, as its reference, and has the word.
-- NULL: written before rows were hashed.
ALTER TABLE usage ADD COLUMN hash BLOB;
