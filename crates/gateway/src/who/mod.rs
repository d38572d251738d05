//! Who is asking: the key and the account behind a request, or the operator.

pub mod caller;
pub mod keys;
pub mod operator;
