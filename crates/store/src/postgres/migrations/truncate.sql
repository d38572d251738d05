-- The ledger is append-only for a statement that empties it, too; the trigger for each row does not see that one.
CREATE TRIGGER entry_no_truncate BEFORE TRUNCATE ON entry FOR EACH STATEMENT EXECUTE FUNCTION tollgate_append_only();
