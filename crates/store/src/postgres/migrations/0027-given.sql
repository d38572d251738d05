-- An entry that comes with its link was linked by a replica, under the lock of its account; the audit recomputes every hash. All others are
-- linked by the trigger, as before.
DROP TRIGGER entry_link ON entry;
CREATE TRIGGER entry_link BEFORE INSERT ON entry FOR EACH ROW WHEN (NEW.link IS NULL) EXECUTE FUNCTION tollgate_link();
-- A transaction that says so brings what its rows add to sums. The audit compares both.
DROP TRIGGER usage_quarter_in ON usage;
CREATE TRIGGER usage_quarter_in AFTER INSERT ON usage REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
  WHEN (current_setting('tollgate.sums', true) IS DISTINCT FROM 'given') EXECUTE FUNCTION usage_quarter_count('1');
