-- What a call cost the operator, in nano-USD; null where nobody knows.
ALTER TABLE usage ADD COLUMN cost bigint;
