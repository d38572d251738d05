-- Sums that wait to be merged are of SQLite alone: here triggers of the log write each sum once for a statement.
SELECT 1;
