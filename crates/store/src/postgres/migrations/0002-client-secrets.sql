-- Secrets that open realtime sessions in the name of a key, for a while. The session is JSON that this room does not read.
CREATE TABLE client_secret (
  hash bytea PRIMARY KEY,
  account_id bytea NOT NULL REFERENCES account (id),
  key_id bytea NOT NULL REFERENCES key (id),
  model text NOT NULL,
  session text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX client_secret_account ON client_secret (account_id, expires_at);
CREATE INDEX client_secret_end ON client_secret (expires_at);

-- Keeps a secret, or says whose limit was met: 1 the account's, 2 the key's. Two of one account wait for each other, so that
-- both counts are exact over all replicas; each statement sees what was committed before it.
CREATE FUNCTION tollgate_client_secret(
  of_hash bytea, of_account bytea, of_key bytea, of_model text, of_session text,
  made_at bigint, ends_at bigint, account_most bigint, key_most bigint
) RETURNS smallint LANGUAGE plpgsql AS $$
DECLARE
  of_all bigint;
  own bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended('client_secret ' || encode(of_account, 'hex'), 0));
  SELECT count(*), count(*) FILTER (WHERE key_id = of_key) INTO of_all, own FROM client_secret
    WHERE account_id = of_account AND expires_at > made_at;
  IF of_all >= account_most THEN RETURN 1; END IF;
  IF own >= key_most THEN RETURN 2; END IF;
  INSERT INTO client_secret (hash, account_id, key_id, model, session, created_at, expires_at)
    VALUES (of_hash, of_account, of_key, of_model, of_session, made_at, ends_at);
  RETURN 0;
END $$;
