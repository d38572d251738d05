-- An item of any conversation can be named by its id alone.
CREATE INDEX conversation_item_named ON conversation_item (account_id, id);
