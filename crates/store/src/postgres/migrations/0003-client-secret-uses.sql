-- How many sessions a client secret may still open; null is as many as there are.
ALTER TABLE client_secret ADD COLUMN uses_left bigint;

-- The same with a number of uses. The function without it stays for replicas of the version before.
CREATE FUNCTION tollgate_client_secret(
  of_hash bytea, of_account bytea, of_key bytea, of_model text, of_session text,
  made_at bigint, ends_at bigint, account_most bigint, key_most bigint, most_uses bigint
) RETURNS smallint LANGUAGE plpgsql AS $$
DECLARE
  outcome smallint;
BEGIN
  outcome := tollgate_client_secret(
    of_hash, of_account, of_key, of_model, of_session, made_at, ends_at, account_most, key_most
  );
  IF outcome = 0 THEN UPDATE client_secret SET uses_left = most_uses WHERE hash = of_hash; END IF;
  RETURN outcome;
END $$;
