//! One cell: what it takes, what it costs, where it is fetched, and how its answers are read.

use std::sync::Arc;

use super::{AnswerRule, Paging, Param};
use crate::{LineInFile, Model};

/// What can be asked of a platform. A closed set: the last part of the usage-log name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Capability {
    Search,
    Post,
    User,
    Comments,
    UserPosts,
    Trending,
}

impl Capability {
    pub const ALL: [Capability; 6] = [
        Capability::Search,
        Capability::Post,
        Capability::User,
        Capability::Comments,
        Capability::UserPosts,
        Capability::Trending,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Capability::Search => "search",
            Capability::Post => "post",
            Capability::User => "user",
            Capability::Comments => "comments",
            Capability::UserPosts => "user-posts",
            Capability::Trending => "trending",
        }
    }

    /// Whether it names one thing by its id; the others give lists.
    pub const fn is_one_thing(self) -> bool {
        matches!(self, Capability::Post | Capability::User)
    }
}

/// One pair of platform and capability on sale.
#[derive(Clone, Debug)]
pub struct Cell {
    pub platform: String,
    pub platform_name_en: String,
    pub platform_name_zh: String,
    pub capability: Capability,
    /// In the order of the public catalog.
    pub params: Vec<Param>,
    /// Groups of parameters (places in `params`) of which at least one must be given.
    pub require_one_of: Vec<Vec<usize>>,
    /// Upstream parameters that must never be exposed or sent.
    pub never_send: Vec<String>,
    /// Top-level members of `data` that are the supplier's, not the platform's, and are left out.
    pub drop: Vec<String>,
    /// In the order they are tried; the routes of `model` are the same in the same order.
    pub routes: Vec<SocialRoute>,
    pub answer: AnswerRule,
    pub paging: Option<Paging>,
    /// How it is sold: name in the usage log, price per call, paid credit only.
    pub model: Arc<Model>,
    pub place: LineInFile,
}

/// A way to fetch a cell.
#[derive(Clone, Debug)]
pub struct SocialRoute {
    pub provider: String,
    pub method: Method,
    /// Below the provider's base address.
    pub path: String,
    /// Values added to every request of this route.
    pub fixed: Vec<(String, String)>,
    /// What one answer costs the operator, in micro-USD.
    pub cost: u64,
}

/// How a route takes its parameters: in the query string, or as a JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
}

impl Cell {
    /// Members left out of `data` where a platform names none of its own: the supplier's session
    /// and tracing.
    pub const DROP: [&'static str; 5] = ["cookie", "tt_chain_token", "debug_id", "debug_info", "attempts"];

    /// The value of `supported_endpoint_types` that only cells have.
    pub const ENDPOINT_TYPE: &'static str = "social";

    /// `/v1/social/<platform>/<capability>`
    pub fn path(&self) -> String {
        format!("/v1/social/{}/{}", self.platform, self.capability.name())
    }

    /// What the dearest route of this cell costs the operator, in micro-USD: what a day's capacity
    /// counts.
    pub fn cost(&self) -> u64 {
        self.routes.iter().map(|route| route.cost).max().unwrap_or(0)
    }

    pub fn param(&self, name: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.name == name)
    }
}
