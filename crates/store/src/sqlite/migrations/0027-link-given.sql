-- Nothing: entries are linked by this program here; on PostgreSQL a trigger does it for those that come without a link.
SELECT 1;
