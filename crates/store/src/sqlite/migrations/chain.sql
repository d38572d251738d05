-- The hash chain of each account (chain.rs). Entries from before have no link; the chain of an account begins with its next one.
ALTER TABLE entry ADD COLUMN link INTEGER;
ALTER TABLE entry ADD COLUMN hash BLOB;
CREATE UNIQUE INDEX entry_link ON entry (account_id, link);
ALTER TABLE account ADD COLUMN links INTEGER NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN head BLOB;
