-- Nothing: holds that are open are in memory here, and have no index.
SELECT 1;
