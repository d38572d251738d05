-- Adds what a call said to its conversation, in order: each item under its own id or, where another has it by now, under its spare one. A statement of
-- its own for each, because a statement does not see what another transaction has added since it began. Answers how many.
CREATE OR REPLACE FUNCTION tollgate_say(v_account bytea, v_conversation text, v_ids text[], v_spare text[], v_items text[])
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. coalesce(cardinality(v_ids), 0) LOOP
    INSERT INTO conversation_item (account_id, conversation, id, item)
      VALUES (v_account, v_conversation, v_ids[i], v_items[i]) ON CONFLICT DO NOTHING;
    CONTINUE WHEN FOUND;
    INSERT INTO conversation_item (account_id, conversation, id, item)
      VALUES (v_account, v_conversation, v_spare[i], v_items[i]) ON CONFLICT DO NOTHING;
  END LOOP;
  RETURN cardinality(v_ids);
END $$;
