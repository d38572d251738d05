//! What was used: one call after another, or added up.

use clap::Args;

#[derive(Args)]
pub struct UsageArgs {
    /// Only this account.
    #[arg(long)]
    pub account: Option<String>,
    /// One call, with its whole calculation (needs --account).
    #[arg(long, requires = "account")]
    pub call: Option<String>,
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub limit: u32,
    /// Continue before this call id.
    #[arg(long)]
    pub before: Option<String>,
    #[command(flatten)]
    pub sums: SumArgs,
}

/// Added up instead of one by one.
#[derive(Args)]
pub struct SumArgs {
    /// Add up calls that began at this time or later: a date, a time in the zone, or milliseconds.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["call", "before", "limit"])]
    pub from: Option<String>,
    /// … and before this time; now when left out.
    #[arg(long, value_name = "TIME", requires = "from")]
    pub to: Option<String>,
    /// With commas: one of hour, day, week, month, and model, key, endpoint, ending, account,
    /// group, provider, route.
    #[arg(long, value_name = "LIST", requires = "from")]
    pub by: Option<String>,
    /// The time zone of dates and days, such as Asia/Kathmandu; UTC when left out.
    #[arg(long, value_name = "ZONE", requires = "from")]
    pub tz: Option<String>,
    /// The groups with the largest charge, and the rest of them in one.
    #[arg(long, value_name = "N", requires = "from")]
    pub top: Option<u32>,
    /// Only this model.
    #[arg(long, requires = "from")]
    pub model: Option<String>,
    /// Only this key.
    #[arg(long, requires = "from")]
    pub key: Option<String>,
    /// Only this endpoint, such as /v1/chat/completions.
    #[arg(long, requires = "from")]
    pub endpoint: Option<String>,
    /// Only calls that ended so: answered, refused, `upstream_fault`, `client_left`, expired.
    #[arg(long, requires = "from")]
    pub ending: Option<String>,
    /// Only this provider.
    #[arg(long, requires = "from")]
    pub provider: Option<String>,
    #[arg(long, value_enum, default_value_t = SumFormat::Table, requires = "from")]
    pub format: SumFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SumFormat {
    Table,
    Csv,
    Json,
}
