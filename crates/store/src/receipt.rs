//! Receipts: what a call cost, signed, so that the customer can prove it to others without asking
//! us. `form` says what a receipt contains and how it is written as bytes, `make` fills it from the
//! books, `keys` signs, `check` verifies without a store. docs/receipts.md is the same for readers
//! outside.

mod check;
mod form;
mod keys;
mod make;
#[cfg(test)]
mod tests;

pub use check::{Invalid, Verified, price_id, price_text, verify, verify_price};
pub use form::{Receipt, ReceiptCalculation, Signed};
pub(crate) use keys::{KeyRecord, SecretKey};
pub use keys::{PublicKey, PublicKeys};
pub(crate) use make::sign;
