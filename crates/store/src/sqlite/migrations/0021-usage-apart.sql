-- As usage_unmerged does since 0020, PostgreSQL now lets sums wait too; nothing changes here.
SELECT 1;
