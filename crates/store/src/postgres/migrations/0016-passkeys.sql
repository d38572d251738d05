-- Passkeys (WebAuthn) of people: the public half of each, as the authenticator gave it (COSE). `rp_id` is the domain it was made for: under
-- another one no browser offers it. `suspected_at` is when its counter first went back. Ceremonies that came to their end are in
-- `issuer_way`, each once, as ways through an issuer are.
CREATE TABLE passkey (
  credential_id bytea NOT NULL PRIMARY KEY,
  id bytea NOT NULL UNIQUE,
  person_id bytea NOT NULL,
  rp_id text NOT NULL,
  name text NOT NULL,
  public_key bytea NOT NULL,
  sign_count bigint NOT NULL,
  transports text NOT NULL,
  backup_eligible bigint NOT NULL,
  backed_up bigint NOT NULL,
  created_at bigint NOT NULL,
  used_at bigint,
  suspected_at bigint
);
CREATE INDEX passkey_person ON passkey (person_id);
