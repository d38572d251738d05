-- It is told the most an account may have; the others are replaced in place.
DROP FUNCTION IF EXISTS tollgate_credit(bytea, smallint, bytea, bytea, boolean, bigint, bigint, text, text, text, bigint);
