-- Nothing: this is about triggers of PostgreSQL.
SELECT 1;
