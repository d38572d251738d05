-- People: who they are, what they prove it with, where they are signed in, and what they may do. Secrets are hashed, or sealed by the
-- secrets file: nothing in these tables opens a session. `folded` is the e-mail by which a person is found.
CREATE TABLE person (
  id BLOB NOT NULL PRIMARY KEY,
  email TEXT NOT NULL,
  folded TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  locale TEXT NOT NULL,
  zone TEXT NOT NULL,
  wished_account TEXT,
  created_at INTEGER NOT NULL,
  verified_at INTEGER,
  disabled_at INTEGER
) WITHOUT ROWID;
-- `kind`: password, totp, totp_new (not confirmed yet), recovery. `used_at` of a totp is the last step that was used.
CREATE TABLE credential (
  person_id BLOB NOT NULL,
  kind TEXT NOT NULL,
  number INTEGER NOT NULL,
  secret BLOB NOT NULL,
  parameters TEXT NOT NULL,
  used_at INTEGER,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (person_id, kind, number)
) WITHOUT ROWID;
CREATE TABLE membership (
  account_id BLOB NOT NULL,
  person_id BLOB NOT NULL,
  role TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (account_id, person_id)
) WITHOUT ROWID;
CREATE INDEX membership_person ON membership (person_id);
CREATE TABLE house_role (
  person_id BLOB NOT NULL PRIMARY KEY,
  role TEXT NOT NULL,
  created_at INTEGER NOT NULL
) WITHOUT ROWID;
-- `hash` is that of the cookie's value, which changes while `id` stays.
CREATE TABLE session (
  hash BLOB NOT NULL PRIMARY KEY,
  id BLOB NOT NULL UNIQUE,
  person_id BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  strong_at INTEGER NOT NULL,
  address TEXT NOT NULL,
  agent TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX session_person ON session (person_id, created_at);
CREATE INDEX session_created ON session (created_at);
-- Into an account, or without one into the house.
CREATE TABLE invite (
  id BLOB NOT NULL PRIMARY KEY,
  hash BLOB NOT NULL UNIQUE,
  email TEXT NOT NULL,
  folded TEXT NOT NULL,
  account_id BLOB,
  role TEXT NOT NULL,
  invited_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX invite_account ON invite (account_id);
CREATE INDEX invite_expires ON invite (expires_at);
-- `purpose`: verify, reset, sign_in, first_operator (which belongs to nobody yet).
CREATE TABLE mail_token (
  hash BLOB NOT NULL PRIMARY KEY,
  purpose TEXT NOT NULL,
  person_id BLOB,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX mail_token_expires ON mail_token (expires_at);
-- Mail that is to be sent, sealed, because there are tokens in it. A row goes when its mail was handed over.
CREATE TABLE mail_outbox (
  id BLOB NOT NULL PRIMARY KEY,
  sealed BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  tries INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX mail_outbox_due ON mail_outbox (due_at);
