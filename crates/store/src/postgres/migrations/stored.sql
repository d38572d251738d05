-- How much each account has stored: responses, conversations and their items. The triggers count, once per statement. 512 is ROW_BYTES
-- of quota.rs.
CREATE TABLE stored (
  account_id bytea PRIMARY KEY,
  bytes bigint NOT NULL DEFAULT 0,
  objects bigint NOT NULL DEFAULT 0,
  items bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

INSERT INTO stored (account_id, bytes, objects, items)
  SELECT account_id, sum(bytes), sum(objects), sum(items) FROM (
    SELECT account_id, 512 + octet_length(id) + bytes AS bytes, 1 AS objects, 0 AS items FROM response
    UNION ALL SELECT account_id, 512 + octet_length(id) + octet_length(response_id), 0, 1 FROM response_item
    UNION ALL SELECT account_id, 512 + octet_length(id) + octet_length(metadata), 1, 0 FROM conversation
    UNION ALL SELECT account_id, 512 + octet_length(conversation) + octet_length(id) + octet_length(item), 0, 1
      FROM conversation_item) kept
  GROUP BY account_id;

-- Accounts in one order, so that two that erase do not wait for each other in a circle.
CREATE FUNCTION stored_count(v_accounts bytea[], v_bytes bigint[], v_objects bigint[], v_items bigint[]) RETURNS void
LANGUAGE sql AS $$
  INSERT INTO stored (account_id, bytes, objects, items)
    SELECT account_id, sum(bytes), sum(objects), sum(items)
    FROM unnest(v_accounts, v_bytes, v_objects, v_items) AS c (account_id, bytes, objects, items)
    GROUP BY account_id ORDER BY account_id
    ON CONFLICT (account_id) DO UPDATE SET bytes = stored.bytes + EXCLUDED.bytes,
      objects = stored.objects + EXCLUDED.objects, items = stored.items + EXCLUDED.items
$$;

CREATE FUNCTION stored_response() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE v_sign bigint := CASE WHEN TG_OP = 'DELETE' THEN -1 ELSE 1 END;
BEGIN
  PERFORM stored_count(array_agg(account_id), array_agg(v_sign * (512 + octet_length(id) + bytes)), array_agg(v_sign),
    array_agg(0::bigint)) FROM changed HAVING count(*) > 0;
  RETURN NULL;
END $$;
CREATE FUNCTION stored_response_item() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE v_sign bigint := CASE WHEN TG_OP = 'DELETE' THEN -1 ELSE 1 END;
BEGIN
  PERFORM stored_count(array_agg(account_id), array_agg(v_sign * (512 + octet_length(id) + octet_length(response_id))),
    array_agg(0::bigint), array_agg(v_sign)) FROM changed HAVING count(*) > 0;
  RETURN NULL;
END $$;
CREATE FUNCTION stored_conversation() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE v_sign bigint := CASE WHEN TG_OP = 'DELETE' THEN -1 ELSE 1 END;
BEGIN
  PERFORM stored_count(array_agg(account_id), array_agg(v_sign * (512 + octet_length(id) + octet_length(metadata))),
    array_agg(v_sign), array_agg(0::bigint)) FROM changed HAVING count(*) > 0;
  RETURN NULL;
END $$;
CREATE FUNCTION stored_metadata() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- Most changes only put off the end.
  PERFORM stored_count(array_agg(n.account_id), array_agg((octet_length(n.metadata) - octet_length(o.metadata))::bigint),
    array_agg(0::bigint), array_agg(0::bigint))
    FROM changed n JOIN before o ON o.account_id = n.account_id AND o.id = n.id
    WHERE octet_length(n.metadata) <> octet_length(o.metadata) HAVING count(*) > 0;
  RETURN NULL;
END $$;
CREATE FUNCTION stored_conversation_item() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE v_sign bigint := CASE WHEN TG_OP = 'DELETE' THEN -1 ELSE 1 END;
BEGIN
  PERFORM stored_count(array_agg(account_id),
    array_agg(v_sign * (512 + octet_length(conversation) + octet_length(id) + octet_length(item))),
    array_agg(0::bigint), array_agg(v_sign)) FROM changed HAVING count(*) > 0;
  RETURN NULL;
END $$;

CREATE TRIGGER stored_in AFTER INSERT ON response REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION stored_response();
CREATE TRIGGER stored_out AFTER DELETE ON response REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION stored_response();
CREATE TRIGGER stored_in AFTER INSERT ON response_item REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION stored_response_item();
CREATE TRIGGER stored_out AFTER DELETE ON response_item REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION stored_response_item();
CREATE TRIGGER stored_in AFTER INSERT ON conversation REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION stored_conversation();
CREATE TRIGGER stored_out AFTER DELETE ON conversation REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION stored_conversation();
CREATE TRIGGER stored_changed AFTER UPDATE ON conversation REFERENCING NEW TABLE AS changed OLD TABLE AS before
  FOR EACH STATEMENT EXECUTE FUNCTION stored_metadata();
CREATE TRIGGER stored_in AFTER INSERT ON conversation_item REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION stored_conversation_item();
CREATE TRIGGER stored_out AFTER DELETE ON conversation_item REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION stored_conversation_item();
