-- The hash chain of each account, as in SQLite; the functions are in chain.sql.
ALTER TABLE entry ADD COLUMN link bigint;
ALTER TABLE entry ADD COLUMN hash bytea;
CREATE UNIQUE INDEX entry_link ON entry (account_id, link);
ALTER TABLE account ADD COLUMN links bigint NOT NULL DEFAULT 0;
ALTER TABLE account ADD COLUMN head bytea;

-- Each replica looks for its own holds past their time, and for all of a dead one.
DROP INDEX open_hold_expires;
