//! Tests of the dialects from outside, in one executable. What measures the memory of its process
//! is apart (`resident.rs`).

mod any_input;
mod cases;
mod client;
mod endings;
mod every_field;
mod exchange;
mod fuzz;
mod hard;
mod limits;
mod matrix;
mod memory;
mod next_turn;
mod pattern;
mod reply;
mod request;
mod stream;
mod there_and_back;
mod usage;
mod usage_odd;
