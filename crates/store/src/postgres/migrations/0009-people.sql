-- People: who they are, what they prove it with, where they are signed in, and what they may do. Secrets are hashed, or sealed by the
-- secrets file: nothing in these tables opens a session. `folded` is the e-mail by which a person is found.
CREATE TABLE person (
  id bytea NOT NULL PRIMARY KEY,
  email text NOT NULL,
  folded text NOT NULL UNIQUE,
  name text NOT NULL,
  locale text NOT NULL,
  zone text NOT NULL,
  wished_account text,
  created_at bigint NOT NULL,
  verified_at bigint,
  disabled_at bigint
);
-- `kind`: password, totp, totp_new (not confirmed yet), recovery. `used_at` of a totp is the last step that was used.
CREATE TABLE credential (
  person_id bytea NOT NULL,
  kind text NOT NULL,
  number bigint NOT NULL,
  secret bytea NOT NULL,
  parameters text NOT NULL,
  used_at bigint,
  created_at bigint NOT NULL,
  PRIMARY KEY (person_id, kind, number)
);
CREATE TABLE membership (
  account_id bytea NOT NULL,
  person_id bytea NOT NULL,
  role text NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (account_id, person_id)
);
CREATE INDEX membership_person ON membership (person_id);
CREATE TABLE house_role (
  person_id bytea NOT NULL PRIMARY KEY,
  role text NOT NULL,
  created_at bigint NOT NULL
);
-- `hash` is that of the cookie's value, which changes while `id` stays.
CREATE TABLE session (
  hash bytea NOT NULL PRIMARY KEY,
  id bytea NOT NULL UNIQUE,
  person_id bytea NOT NULL,
  created_at bigint NOT NULL,
  seen_at bigint NOT NULL,
  strong_at bigint NOT NULL,
  address text NOT NULL,
  agent text NOT NULL
);
CREATE INDEX session_person ON session (person_id, created_at);
CREATE INDEX session_created ON session (created_at);
-- Into an account, or without one into the house.
CREATE TABLE invite (
  id bytea NOT NULL PRIMARY KEY,
  hash bytea NOT NULL UNIQUE,
  email text NOT NULL,
  folded text NOT NULL,
  account_id bytea,
  role text NOT NULL,
  invited_by text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX invite_account ON invite (account_id);
CREATE INDEX invite_expires ON invite (expires_at);
-- `purpose`: verify, reset, sign_in, first_operator (which belongs to nobody yet).
CREATE TABLE mail_token (
  hash bytea NOT NULL PRIMARY KEY,
  purpose text NOT NULL,
  person_id bytea,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX mail_token_expires ON mail_token (expires_at);
-- Mail that is to be sent, sealed, because there are tokens in it. A row goes when its mail was handed over.
CREATE TABLE mail_outbox (
  id bytea NOT NULL PRIMARY KEY,
  sealed bytea NOT NULL,
  created_at bigint NOT NULL,
  due_at bigint NOT NULL,
  tries bigint NOT NULL
);
CREATE INDEX mail_outbox_due ON mail_outbox (due_at);
