-- What a key is for: null are calls.
ALTER TABLE key ADD COLUMN scope text;
