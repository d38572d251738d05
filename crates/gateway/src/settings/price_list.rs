//! `[price_list]` in tollgate.toml: what the public price list shows.

use tollgate_catalog::form::Form;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceListSettings {
    /// How far back `route_health` looks.
    pub health_hours: u32,
    /// Whether `/api/ratio_config` answers.
    pub ratio_config: bool,
}

impl Default for PriceListSettings {
    fn default() -> PriceListSettings {
        PriceListSettings { health_hours: 24, ratio_config: false }
    }
}

impl PriceListSettings {
    pub fn read(form: &mut Form<'_>) -> PriceListSettings {
        let default = PriceListSettings::default();
        let mut table = form.table("price_list");
        let settings = PriceListSettings {
            health_hours: table.int_or("health_hours", default.health_hours, 1..=168),
            ratio_config: table.flag_or("ratio_config", default.ratio_config),
        };
        table.finish();
        settings
    }
}
