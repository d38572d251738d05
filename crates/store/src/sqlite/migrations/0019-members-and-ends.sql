-- Whether members see what all keys of the account use; null is no.
ALTER TABLE account ADD COLUMN members_see_all INTEGER;
