-- The trigger that links an entry to the one before it: the same hashes in three quarters of the time. A setting is set without a
-- statement of its own, and the last link of the transaction is read without being taken apart by a separator. The setting has another name, so that a
-- transaction in which both forms of the trigger run finds the last link in the table.
CREATE OR REPLACE FUNCTION tollgate_link() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_hash bytea;
  -- The last link of this transaction: account, hash, number. Set back when the transaction ends or a part of it is undone. Bytes are written as
  -- digits here, whatever the server is set to: its other form depends on the bytes.
  v_last text := current_setting('tollgate.linked', true);
  v_none CONSTANT bytea := '\xffffffff';
BEGIN
  IF left(v_last, 32) = encode(NEW.account_id, 'hex') THEN
    v_hash := decode(substr(v_last, 33, 64), 'hex');
    NEW.link := substr(v_last, 97)::bigint + 1;
  ELSE
    SELECT link + 1, hash INTO NEW.link, v_hash FROM entry
      WHERE account_id = NEW.account_id AND link IS NOT NULL ORDER BY link DESC LIMIT 1;
    NEW.link := coalesce(NEW.link, 1);
  END IF;
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
  v_last := set_config('tollgate.linked', encode(NEW.account_id || NEW.hash, 'hex') || NEW.link, true);
  RETURN NEW;
END $$;
