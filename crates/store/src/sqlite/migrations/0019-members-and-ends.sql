-- Whether members see what all keys of the account use; null is no.
ALTER TABLE account ADD COLUMN members_see_all INTEGER;
-- Since when it is closed (`closed_at` is when it was suspended), what was given up then, and since when nothing is known of its people.
ALTER TABLE account ADD COLUMN ended_at INTEGER;
ALTER TABLE account ADD COLUMN given_up_trial INTEGER;
ALTER TABLE account ADD COLUMN given_up_paid INTEGER;
ALTER TABLE account ADD COLUMN erased_at INTEGER;
CREATE INDEX account_ended ON account (ended_at) WHERE ended_at IS NOT NULL AND erased_at IS NULL;
