-- An entry that comes with its link was linked by a replica, under the lock of its account; the audit recomputes every hash. All others are
-- linked by the trigger, as before.
DROP TRIGGER entry_link ON entry;
CREATE TRIGGER entry_link BEFORE INSERT ON entry FOR EACH ROW WHEN (NEW.link IS NULL) EXECUTE FUNCTION tollgate_link();
