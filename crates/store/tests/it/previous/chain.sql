-- The hash chain of each account; the words of chain.rs. A trigger links every entry, whichever function inserts it, so none can
-- be forgotten. Entries of an account are inserted under its row lock, so there is one last link.

-- A value that can be missing is its length and itself, or all ones; written out, because a function for it costs more than the
-- hash.
CREATE OR REPLACE FUNCTION tollgate_link() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_hash bytea;
  -- The last link of this transaction: account, number, hash. Set back when the transaction ends or a part of it is undone.
  v_last text[] := string_to_array(current_setting('tollgate.link', true), ' ');
  v_none CONSTANT bytea := '\xffffffff';
BEGIN
  -- Bytes are written as digits here, whatever the server is set to: its other form has spaces in it.
  IF v_last[1] = encode(NEW.account_id, 'hex') THEN
    NEW.link := v_last[2];
    v_hash := decode(v_last[3], 'hex');
  ELSE
    SELECT link, hash INTO NEW.link, v_hash FROM entry
      WHERE account_id = NEW.account_id AND link IS NOT NULL ORDER BY link DESC LIMIT 1;
  END IF;
  NEW.link := coalesce(NEW.link, 0) + 1;
  NEW.hash := sha256(coalesce(v_hash, '\x0000000000000000000000000000000000000000000000000000000000000000')
    || int8send(NEW.link) || int4send(length(NEW.op_id)) || NEW.op_id || int8send(NEW.kind)
    || int4send(length(NEW.account_id)) || NEW.account_id || coalesce(int4send(length(NEW.key_id)) || NEW.key_id, v_none)
    || int8send(NEW.trial) || int8send(NEW.paid) || int8send(NEW.take_trial) || int8send(NEW.take_paid) || int8send(NEW.at)
    || coalesce(int4send(length(NEW.price_id)) || NEW.price_id, v_none)
    || coalesce(int4send(length(convert_to(NEW.model, 'UTF8'))) || convert_to(NEW.model, 'UTF8'), v_none)
    || coalesce(int4send(length(convert_to(NEW.endpoint, 'UTF8'))) || convert_to(NEW.endpoint, 'UTF8'), v_none)
    || coalesce('\x00000008'::bytea || int8send(NEW.expires_at), v_none)
    || CASE WHEN NEW.paid_only THEN '\x0000000101'::bytea WHEN NOT NEW.paid_only THEN '\x0000000100'::bytea ELSE v_none END
    || coalesce(int4send(length(NEW.replica)) || NEW.replica, v_none)
    || coalesce(int4send(length(convert_to(NEW.reference, 'UTF8'))) || convert_to(NEW.reference, 'UTF8'), v_none)
    || coalesce(int4send(length(convert_to(NEW.actor, 'UTF8'))) || convert_to(NEW.actor, 'UTF8'), v_none)
    || coalesce(int4send(length(convert_to(NEW.reason, 'UTF8'))) || convert_to(NEW.reason, 'UTF8'), v_none)
    || coalesce(int4send(length(convert_to(NEW.lots, 'UTF8'))) || convert_to(NEW.lots, 'UTF8'), v_none));
  PERFORM set_config('tollgate.link', concat_ws(' ', encode(NEW.account_id, 'hex'), NEW.link, encode(NEW.hash, 'hex')), true);
  RETURN NEW;
END $$;

-- Notes the end of each chain in the account, at the end of a transaction: what is cut off then shows.
CREATE OR REPLACE FUNCTION tollgate_seal(v_accounts bytea[]) RETURNS void LANGUAGE sql AS $$
  UPDATE account a SET links = e.link, head = e.hash
  FROM unnest(v_accounts) AS touched (id) CROSS JOIN LATERAL (SELECT link, hash FROM entry
    WHERE account_id = touched.id AND link IS NOT NULL ORDER BY link DESC LIMIT 1) e
  WHERE a.id = touched.id AND a.links <> e.link
$$;

CREATE OR REPLACE TRIGGER entry_link BEFORE INSERT ON entry FOR EACH ROW EXECUTE FUNCTION tollgate_link();
