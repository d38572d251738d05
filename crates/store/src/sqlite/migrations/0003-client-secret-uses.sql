-- How many sessions a client secret may still open; null is as many as there are.
ALTER TABLE client_secret ADD COLUMN uses_left INTEGER;
