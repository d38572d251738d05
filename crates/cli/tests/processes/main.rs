//! The executable from outside: real processes, real sockets, real databases, and signals that give
//! no time to say goodbye. Nothing here reaches into a process; what a test knows, an operator, a
//! client or a provider could see.

mod books;
mod catalog;
mod changes;
mod chaos;
mod check;
mod commands;
mod crashes;
mod database_crash;
mod demo;
mod experiment;
mod faults;
mod hoards;
mod house;
mod kinds;
mod ledger_files;
mod load;
mod media;
mod models;
mod newcomer;
mod overdraft;
mod payments;
mod postgres;
mod process;
mod providers;
mod published;
mod quote;
mod receipts;
mod restore;
mod revoked;
mod run_commands;
mod runs;
mod secrets;
mod seen;
mod sessions;
mod shapes;
mod social;
mod stop;
mod tampering;
mod tasks;
mod unseen;
mod upgrade;
mod video;
