-- One thread writes, so `seq` is the order of every chain: the index along them only cost inserts.
DROP INDEX entry_link;
