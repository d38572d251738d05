-- Who may use the operator's API. The secret itself is never stored.
CREATE TABLE admin_key (
  id bytea PRIMARY KEY,
  hash bytea NOT NULL UNIQUE,
  prefix text NOT NULL,
  name text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint
);

-- What operators did besides money (which has its own rows in the ledger) and pauses (social_change).
CREATE TABLE operator_event (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  actor text NOT NULL,
  action text NOT NULL,
  subject text NOT NULL,
  reason text NOT NULL
);
CREATE FUNCTION tollgate_done_is_done() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'what was done is not changed'; END $$;
CREATE TRIGGER operator_event_append_only BEFORE UPDATE OR DELETE ON operator_event
  FOR EACH ROW EXECUTE FUNCTION tollgate_done_is_done();
CREATE TRIGGER social_change_append_only BEFORE UPDATE OR DELETE ON social_change
  FOR EACH ROW EXECUTE FUNCTION tollgate_done_is_done();
