//! All tests of the store from outside, in one executable. `conformance` runs one suite on both
//! engines (`cases`); the others show what only one engine, several processes or a damaged database
//! can show. `common` is the house they live in.

mod apart;
mod behind;
mod cable;
mod cases;
mod common;
mod conformance;
mod crashes;
mod damage;
mod faults;
mod hand;
mod ledger_tables;
mod merged;
mod migrations;
mod operators;
mod plain;
mod power;
mod properties;
mod recovery;
mod refused;
mod replicas;
mod rows;
mod sounds;
mod starts;
mod stored;
mod sums_read;
mod tls;
mod unmerged;
mod upgrades;
mod whole;
