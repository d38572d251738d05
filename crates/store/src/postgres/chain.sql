-- What belongs to the hash chain of each account. The trigger that links an entry to the one before it is in schema.sql: it
-- is the form of the ledger, the same for all versions that share the database.

-- Notes the end of each chain in the account, at the end of a transaction: what is cut off then shows.
CREATE OR REPLACE FUNCTION tollgate_seal(v_accounts bytea[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  -- In PL/pgSQL, which plans it once for a connection and not once for a group.
  UPDATE account a SET links = e.link, head = e.hash
  FROM unnest(v_accounts) AS touched (id) CROSS JOIN LATERAL (SELECT link, hash FROM entry
    WHERE account_id = touched.id AND link IS NOT NULL ORDER BY link DESC LIMIT 1) e
  WHERE a.id = touched.id AND a.links <> e.link;
END $$;

-- The hash of a usage row, as the reference of the entry that ends its call; the words of row_hash.rs. `facts` is the hash of what the
-- call was like, made by the replica; here comes what was decided. NULL where it is missing.
CREATE OR REPLACE FUNCTION tollgate_row_hash(v_row jsonb, v_key bytea, v_price bytea, v_hold bigint, v_charge bigint, v_write_off bigint)
RETURNS text LANGUAGE sql STABLE AS $$
  SELECT 'usage-1:' || encode(sha256((v_row->>'facts')::bytea || int4send(length(v_key)) || v_key
    || coalesce(int4send(length(coalesce((v_row->>'price_id')::bytea, v_price))) || coalesce((v_row->>'price_id')::bytea, v_price),
      '\xffffffff'::bytea)
    || int8send(v_hold) || int8send(v_charge) || int8send(v_write_off)), 'hex')
$$;
