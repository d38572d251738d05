-- Who made a key, where it was a person, and where it comes from: `console` is that of somebody's playground.
ALTER TABLE key ADD COLUMN person_id BLOB;
ALTER TABLE key ADD COLUMN origin TEXT;
CREATE INDEX key_person ON key (person_id) WHERE person_id IS NOT NULL;

-- Who somebody is at an issuer of OpenID Connect. `email` is what the issuer said, for people to recognise it.
CREATE TABLE issuer_link (
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  person_id BLOB NOT NULL,
  email TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  used_at INTEGER NOT NULL,
  PRIMARY KEY (issuer, subject)
) WITHOUT ROWID;
CREATE INDEX issuer_link_person ON issuer_link (person_id);
-- Ways through an issuer that came to their end, each once: until then the browser carries what belongs to it.
CREATE TABLE issuer_way (
  hash BLOB NOT NULL PRIMARY KEY,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX issuer_way_expires ON issuer_way (expires_at);
