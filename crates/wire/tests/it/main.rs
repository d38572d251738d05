//! Tests of the wire formats from outside, in one executable.

mod errors_page;
mod multipart;
mod sse;
