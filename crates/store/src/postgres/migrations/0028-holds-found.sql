-- Every hold was written into this index for those who look for holds of a replica: at a start, and every ten seconds for those past their time. There are
-- never more rows than calls that run, and who looks reads them all. Earlier versions do the same without the index.
DROP INDEX open_hold_replica;
