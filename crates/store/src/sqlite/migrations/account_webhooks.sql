-- Where an account wants to hear of all its tasks.
ALTER TABLE account ADD COLUMN webhook_url TEXT;
