-- Passkeys (WebAuthn) of people: the public half of each, as the authenticator gave it (COSE). `rp_id` is the domain it was made for: under
-- another one no browser offers it. `suspected_at` is when its counter first went back. Ceremonies that came to their end are in
-- `issuer_way`, each once, as ways through an issuer are.
CREATE TABLE passkey (
  credential_id BLOB NOT NULL PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  person_id BLOB NOT NULL,
  rp_id TEXT NOT NULL,
  name TEXT NOT NULL,
  public_key BLOB NOT NULL,
  sign_count INTEGER NOT NULL,
  transports TEXT NOT NULL,
  backup_eligible INTEGER NOT NULL,
  backed_up INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  used_at INTEGER,
  suspected_at INTEGER
) WITHOUT ROWID;
CREATE INDEX passkey_person ON passkey (person_id);
