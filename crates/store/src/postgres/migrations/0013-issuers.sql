-- Who made a key, where it was a person, and where it comes from: `console` is that of somebody's playground.
ALTER TABLE key ADD COLUMN person_id bytea;
ALTER TABLE key ADD COLUMN origin text;
CREATE INDEX key_person ON key (person_id) WHERE person_id IS NOT NULL;

-- Who somebody is at an issuer of OpenID Connect. `email` is what the issuer said, for people to recognise it.
CREATE TABLE issuer_link (
  issuer text NOT NULL,
  subject text NOT NULL,
  person_id bytea NOT NULL,
  email text NOT NULL,
  created_at bigint NOT NULL,
  used_at bigint NOT NULL,
  PRIMARY KEY (issuer, subject)
);
CREATE INDEX issuer_link_person ON issuer_link (person_id);
-- Ways through an issuer that came to their end, each once: until then the browser carries what belongs to it.
CREATE TABLE issuer_way (
  hash bytea NOT NULL PRIMARY KEY,
  expires_at bigint NOT NULL
);
CREATE INDEX issuer_way_expires ON issuer_way (expires_at);
