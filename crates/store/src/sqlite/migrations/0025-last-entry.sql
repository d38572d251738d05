-- The time of the last entry of an account. So far it was followed for all accounts together, and no account has a later entry than the
-- last of all, unless that was dated by a clock that was far ahead.
ALTER TABLE account ADD COLUMN last_at INTEGER NOT NULL DEFAULT 0;
UPDATE account SET last_at = coalesce((SELECT at FROM entry ORDER BY seq DESC LIMIT 1), 0);
