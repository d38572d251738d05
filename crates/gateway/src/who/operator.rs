//! Who operates: the admin key behind a request to `/api/admin/*`, or the session of somebody with
//! a role in the house. Admin keys belong to no account and pay for nothing; keys of accounts do
//! not open these paths, and admin keys open no others.
//!
//! A key is read from the store with every request, so that a revoked one stops at once: operators
//! ask seldom.

use super::Register;
use crate::door::peer::Peer;
use crate::refusal::Refusal;
use crate::who::caller::{presented_key, presents_key};
use crate::who::person::{self, Person, has_cookie};
use http::request::Parts;
use tollgate_store::{AdminKey, HouseRole, hash_secret};
use tollgate_wire::error::Code;

/// How an admin key begins: nobody takes it for a key of an account, and scanners for leaked
/// secrets find it.
pub const PREFIX: &str = "ak-";

/// How a key of an account begins.
pub const KEY_PREFIX: &str = "sk-";

/// A new secret: its beginning and 48 random letters and digits (285 bits).
pub fn new_secret(prefix: &str, fill: impl Fn(&mut [u8])) -> String {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut secret = String::from(prefix);
    while secret.len() < prefix.len() + 48 {
        let mut byte = [0];
        fill(&mut byte);
        // 248 is the largest multiple of 62 in a byte: above it the draw would favour the first
        // letters.
        if byte[0] < 248 {
            secret.push(char::from(ALPHABET[usize::from(byte[0]) % ALPHABET.len()]));
        }
    }
    secret
}

/// Somebody who may do what an operator may do.
pub enum Operator {
    Key(Box<AdminKey>),
    Person(Box<Person>),
}

impl Operator {
    /// What stands in the log beside everything that is done.
    pub fn actor(&self) -> String {
        match self {
            Operator::Key(key) => key.actor(),
            Operator::Person(person) => person.actor(),
        }
    }

    /// What needs a fresh proof needs it of people; a key is one.
    pub fn must_be_strong(&self) -> Result<(), Refusal> {
        match self {
            Operator::Key(_) => Ok(()),
            Operator::Person(person) => person.must_be_strong(),
        }
    }
}

/// Finds the operator behind a request or says why not. Missing, unknown, revoked and expired keys
/// get one answer.
pub async fn authenticate(register: &Register<'_>, parts: &Parts) -> Result<Operator, Refusal> {
    if !presents_key(&parts.headers) && has_cookie(register.people, &parts.headers) {
        return by_session(register, parts).await;
    }
    let none = || {
        Refusal::new(Code::InvalidApiKey, "This path needs an admin key; it is missing, unknown, revoked or expired.")
    };
    let key = presented_key(&parts.headers, None).map_err(|_| none())?;
    if !key.starts_with(PREFIX) {
        return Err(none());
    }
    let found = register.store.admin_key_by_hash(hash_secret(key)).await?.ok_or_else(none)?;
    if !found.works_at(register.world.now_ms()) {
        return Err(none());
    }
    Peer::prove(parts);
    Ok(Operator::Key(Box::new(found)))
}

/// Operators do everything, auditors read.
async fn by_session(register: &Register<'_>, parts: &Parts) -> Result<Operator, Refusal> {
    let person = person::authenticate(register, parts).await?;
    match person.house_role {
        Some(HouseRole::Operator) => Ok(Operator::Person(Box::new(person))),
        Some(HouseRole::Auditor) if person::reads(&parts.method) => Ok(Operator::Person(Box::new(person))),
        Some(HouseRole::Auditor) => Err(Refusal::new(Code::RoleRequired, "An auditor reads, and changes nothing.")),
        None => Err(Refusal::new(Code::RoleRequired, "This path is for operators and auditors.")),
    }
}
