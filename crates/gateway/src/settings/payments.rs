//! `[payments.stripe]` in tollgate.toml: customers pay their credit in by themselves. Without the
//! table nobody is asked for money.

use super::ConfigSource;
use std::time::Duration;
use tollgate_catalog::Money;
use tollgate_catalog::form::Form;
use tollgate_store::OrderLimits;
use tollgate_upstream::{BaseUrl, Secret, StripeAccount, StripeSignature};

/// Currencies whose smallest unit is the whole one.
const WHOLE: [&str; 16] =
    ["bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "ugx", "vnd", "vuv", "xaf", "xof", "xpf"];
/// Currencies with three decimals, which Stripe takes in tens only.
const THREE: [&str; 5] = ["bhd", "jod", "kwd", "omr", "tnd"];

#[derive(Clone, Debug)]
pub struct PaymentSettings {
    /// `None`: there are no payments.
    pub stripe: Option<StripeSettings>,
    /// An account with a debt is suspended until it is paid or forgiven.
    pub stop_on_debt: bool,
    /// So is one whose payment is disputed.
    pub stop_on_dispute: bool,
    /// Codes that were wrong, in an hour.
    pub wrong_codes: WrongCodes,
}

/// How many wrong codes an hour has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongCodes {
    pub account: u32,
    pub address: u32,
    pub all: u32,
}

#[derive(Clone, Debug)]
pub struct StripeSettings {
    pub api: StripeAccount,
    pub signature: StripeSignature,
    /// Three lower-case letters.
    pub currency: String,
    /// What one whole unit of it is worth in credit.
    pub usd_per_unit: Money,
    /// In the smallest unit of the currency.
    pub least: i64,
    pub most: i64,
    pub success_url: String,
    pub cancel_url: String,
    /// What customers read beside the amount.
    pub product: String,
    /// How long an order can be paid.
    pub session_time: Duration,
    /// When an order of which nothing was heard is looked at first.
    pub first_look: Duration,
    pub limits: OrderLimits,
}

impl Default for PaymentSettings {
    fn default() -> PaymentSettings {
        let wrong_codes = WrongCodes { account: 10, address: 30, all: 3_600 };
        PaymentSettings { stripe: None, stop_on_debt: true, stop_on_dispute: true, wrong_codes }
    }
}

impl PaymentSettings {
    pub fn read(form: &mut Form<'_>, source: &ConfigSource) -> PaymentSettings {
        let default = PaymentSettings::default();
        let mut table = form.table("payments");
        let stripe = table.opt_table("stripe").and_then(|mut stripe| {
            let settings = StripeSettings::read(&mut stripe, source);
            stripe.finish();
            settings
        });
        let codes = default.wrong_codes;
        let settings = PaymentSettings {
            stripe,
            stop_on_debt: table.flag_or("stop_on_debt", default.stop_on_debt),
            stop_on_dispute: table.flag_or("stop_on_dispute", default.stop_on_dispute),
            wrong_codes: WrongCodes {
                account: table.int_or("wrong_codes_per_account", codes.account, 1..=100_000),
                address: table.int_or("wrong_codes_per_address", codes.address, 1..=100_000),
                all: table.int_or("wrong_codes", codes.all, 1..=1_000_000),
            },
        };
        table.finish();
        settings
    }
}

impl StripeSettings {
    fn read(form: &mut Form<'_>, source: &ConfigSource) -> Option<StripeSettings> {
        let key = source.hidden(form, "secret").map(Secret::new).filter(|key| !key.is_empty());
        if key.is_none() && !form.has("secret_env") && !form.has("secret_file") {
            form.mistake("secret_env", "names the variable with Stripe's secret key (or secret_file a file)");
        }
        let signature = Self::signature(form, source);
        let base = form.text_or("api_base", "https://api.stripe.com");
        let base = BaseUrl::parse(&base).map_err(|bad| form.mistake("api_base", bad.to_string())).ok();
        let currency = form.text_or("currency", "usd");
        if currency.len() != 3 || !currency.bytes().all(|b| b.is_ascii_lowercase()) || THREE.contains(&&*currency) {
            form.mistake(
                "currency",
                "must be three lower-case letters such as \"usd\", of a currency with two decimals or none",
            );
        }
        let usd_per_unit: Money = match form.has("usd_per_unit") {
            true => form.parsed_or("usd_per_unit", Money::from_nano(1_000_000_000)),
            false => {
                if currency != "usd" {
                    form.mistake("usd_per_unit", "says what one unit of the currency is worth in USD of credit");
                }
                Money::from_nano(1_000_000_000)
            }
        };
        let (least, most): (i64, i64) =
            (form.int_or("min_amount", 500, 1..=99_999_999), form.int_or("max_amount", 100_000, 1..=99_999_999));
        if usd_per_unit.nano() <= 0 || least > most {
            form.mistake("min_amount", "must not be above max_amount, and usd_per_unit must be above zero");
        }
        let (success_url, cancel_url) = (page(form, "success_url"), page(form, "cancel_url"));
        let session_time = form.duration_or("session_time", Duration::from_secs(3_600));
        if !(Duration::from_secs(1_800)..=Duration::from_secs(82_800)).contains(&session_time) {
            form.mistake("session_time", "must be 30m to 23h");
        }
        let first_look = form.duration_or("first_look", Duration::from_secs(60));
        if !(Duration::from_secs(1)..=Duration::from_secs(3_600)).contains(&first_look) {
            form.mistake("first_look", "must be 1s to 1h");
        }
        let limits = OrderLimits {
            open: form.int_or("open_orders", 5, 1..=1_000),
            hour: form.int_or("orders_per_hour", 20, 1..=10_000),
        };
        let product = form.text_or("product", "Credit");
        let patience = form.duration_or("patience", Duration::from_secs(20));
        let api = StripeAccount::new(base?, key?, patience);
        let signature = signature?;
        Some(StripeSettings {
            api,
            signature,
            currency,
            usd_per_unit,
            least,
            most,
            success_url,
            cancel_url,
            product,
            session_time,
            first_look,
            limits,
        })
    }

    /// Lines or words of one text: two while a secret is exchanged. An empty one is refused:
    /// anybody could sign with it.
    fn signature(form: &mut Form<'_>, source: &ConfigSource) -> Option<StripeSignature> {
        let there = form.has("webhook_secret_env") || form.has("webhook_secret_file");
        let text = source.hidden(form, "webhook_secret");
        let split = |c: char| c == ',' || c.is_whitespace();
        let signature = text.and_then(|text| StripeSignature::new(text.split(split).filter(|word| !word.is_empty())));
        if signature.is_none() {
            let name = if form.has("webhook_secret_file") { "webhook_secret_file" } else { "webhook_secret_env" };
            let why = "must name the secret of Stripe's webhook (whsec_…), 16 characters at least: with an empty one anybody could sign";
            if there || text_missing(form) {
                form.mistake(name, why);
            }
        }
        signature
    }

    /// What is credited for an amount in the smallest unit; `None`: it fits into no number.
    pub fn credit(&self, amount_minor: i64) -> Option<Money> {
        let units = if WHOLE.contains(&self.currency.as_str()) { 1 } else { 100 };
        let nano = i128::from(amount_minor) * i128::from(self.usd_per_unit.nano()) / units;
        i64::try_from(nano).ok().map(Money::from_nano)
    }
}

fn text_missing(form: &Form<'_>) -> bool {
    !form.has("webhook_secret_env") && !form.has("webhook_secret_file")
}

/// Where a browser goes afterwards.
fn page(form: &mut Form<'_>, name: &str) -> String {
    let text = form.text(name);
    let plain = text.starts_with("https://") || text.starts_with("http://");
    if !text.is_empty() && (!plain || text.len() > 2_048 || text.bytes().any(|b| b.is_ascii_whitespace())) {
        form.mistake(name, "must be an address that begins with https:// or http://");
    }
    text
}
