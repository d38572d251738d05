//! The family rules of section 4.2 of the specification, one row per sentence: what was asked, the
//! exact body for the provider, the facts a price can depend on, and what the caller gets to read.

mod family_a;
mod family_b;
mod family_c;
mod family_d;
mod family_e;
mod forms;
mod names;
mod on_sale;
mod others;
mod overruled;
mod prices;
mod requests;
mod table;
mod tasks;
