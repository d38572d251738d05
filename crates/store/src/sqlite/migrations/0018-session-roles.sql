-- What an issuer of OpenID Connect says that somebody may do in the house: as long as this session lasts.
ALTER TABLE session ADD COLUMN issuer_role TEXT;
-- The account that somebody of the house looks at as its customers see it, and until when.
ALTER TABLE session ADD COLUMN views_account BLOB;
ALTER TABLE session ADD COLUMN views_until INTEGER;
