-- They are told the most an account may have and the time that is certain; the others are replaced in place.
DROP FUNCTION IF EXISTS tollgate_credit(bytea, smallint, bytea, bytea, boolean, bigint, bigint, text, text, text, bigint);
DROP FUNCTION IF EXISTS tollgate_lapse(bytea, bigint);
DROP FUNCTION IF EXISTS tollgate_lapse_account(bytea, bigint);
