//! A question to a cell: which one it is, what is sent for it, and what it costs at most.

use crate::call::{Need, Priced};
use crate::refusal::Refusal;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::sync::Arc;
use tollgate_catalog::Model;
use tollgate_catalog::social::{Cell, Checked, ParamValue, SocialRoute};
use tollgate_media::social::encode;
use tollgate_store::Counters;
use tollgate_wire::error::Code;

pub struct AskedCell {
    pub cell: Arc<Cell>,
    pub checked: Checked,
}

impl AskedCell {
    /// The same question, whoever asks it.
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(&self.cell.model.name);
        for (name, value) in self.checked.pairs(&self.cell) {
            hash.update([0]);
            hash.update(name);
            hash.update([1]);
            hash.update(value.to_string());
        }
        hash.finalize().into()
    }

    /// As a route takes it that is asked with GET: given values, then those that the route always
    /// has.
    pub fn query(&self, route: &SocialRoute) -> String {
        let mut query = String::new();
        let fixed = route.fixed.iter().map(|(name, value)| (name.as_str(), Cow::Borrowed(value.as_str())));
        let given = self.checked.pairs(&self.cell).map(|(name, value)| (name, Cow::Owned(value.to_string())));
        for (name, value) in given.chain(fixed) {
            if !query.is_empty() {
                query.push('&');
            }
            encode(&mut query, name);
            query.push('=');
            encode(&mut query, &value);
        }
        query
    }

    /// As a route takes it that is asked with POST.
    pub fn body(&self, route: &SocialRoute) -> Bytes {
        let given = self.checked.pairs(&self.cell).map(|(name, value)| (name.to_owned(), value.json()));
        let fixed = route.fixed.iter().map(|(name, value)| (name.clone(), ParamValue::Text(value.clone()).json()));
        let object: serde_json::Map<String, serde_json::Value> = given.chain(fixed).collect();
        Bytes::from(serde_json::Value::Object(object).to_string())
    }
}

impl Priced for AskedCell {
    fn model(&self) -> &str {
        &self.cell.model.name
    }

    fn endpoint_type(&self) -> &'static str {
        Cell::ENDPOINT_TYPE
    }

    fn need(&self, _: &Model) -> Result<Need, Refusal> {
        let most = Counters { calls: 1, ..Counters::default() };
        Ok(Need { most, exact: true, ..Need::default() })
    }

    fn unavailable(&self) -> Code {
        Code::SocialDataUnavailable
    }

    fn tries_paused(&self) -> bool {
        true
    }

    fn attribute(&self, path: &str) -> Option<Cow<'_, str>> {
        self.checked.get(&self.cell, path).map(|value| Cow::Owned(value.to_string()))
    }
}
