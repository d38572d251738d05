//! A request for pictures as far as its price depends on it: how many, how large, how good.

use crate::call::{Need, Priced};
use crate::fetcher::Fetcher;
use crate::refusal::Refusal;
use crate::sale::Serving;
use crate::sale::pictures::ENDPOINT_TYPE;
use crate::work::priced_fields::priced_is_sent;
use std::borrow::Cow;
use tollgate_catalog::{Face, ImageTable, Model, Price, Route};
use tollgate_media::image::{ImagePlan, ImageRequest, ImageRules, PictureFormat, predicted_name};
use tollgate_store::Counters;
use tollgate_upstream::video::Asking;
use tollgate_upstream::{ImageJob, ImageMaker, PictureFile, Provider};
use tollgate_wire::error::Code;
use tollgate_wire::{Dropped, Problem};

/// A request held to what its model sells.
pub struct ImageAsk {
    model: String,
    plan: Result<ImagePlan, Refusal>,
}

impl ImageAsk {
    /// `links`: the gateway can keep pictures and hand over links to them.
    pub fn of(serving: &Serving, request: ImageRequest, links: bool) -> ImageAsk {
        let (model, predicts) = (request.model.clone(), request.predicts);
        let plan = match serving.catalog.model(&model) {
            Some(known) => ImagePlan::new(request, &rules(serving, known, links)).map_err(Refusal::from),
            // Reported by the admission, which looks first.
            None => Err(Refusal::about(Code::ModelNotFound, "model", "No such model.")),
        };
        let plan = plan.map_err(|refusal| in_words_of(predicts, refusal));
        ImageAsk { model, plan }
    }

    pub(super) fn plan(&self) -> Result<&ImagePlan, Refusal> {
        self.plan.as_ref().map_err(Clone::clone)
    }

    /// Whether any provider of the model could take it.
    pub(super) fn fits_routes(&self, files: &[PictureFile], serving: &Serving, model: &Model) -> Result<(), Refusal> {
        let plan = self.plan()?;
        let mut refused: Option<Problem> = None;
        for route in &model.routes {
            let Some(provider) = serving.providers.get(&route.provider) else { continue };
            let Some(maker) = provider.kind.image else { continue };
            let job = job(plan, model, route, files);
            let taken = maker.create(&Asking { provider, now: 0 }, &job).map(|_| ());
            match taken.and_then(|()| asked_as_priced(maker, provider, &job, model)) {
                Ok(()) => return Ok(()),
                Err(problem) => refused = refused.or(Some(problem)),
            }
        }
        refused.map_or(Ok(()), |problem| Err(in_words_of(plan.asked.predicts, problem.into())))
    }
}

/// What the price goes by is asked of the maker: where it is left out, the picture would be sold as
/// something else than it is. Nor is a maker asked for more than it does.
pub(super) fn asked_as_priced(
    maker: &dyn ImageMaker,
    provider: &Provider,
    job: &ImageJob<'_>,
    model: &Model,
) -> Result<(), Problem> {
    let limits = maker.limits(provider, job.api);
    if job.plan.n > limits.most {
        return Err(Problem::wrong("n", &format!("at most {} at the model's provider", limits.most)));
    }
    if job.plan.asked.images.len() as u64 > limits.sources {
        return Err(Problem::wrong("image", &format!("at most {} images at the model's provider", limits.sources)));
    }
    let mut dropped = Dropped::default();
    maker.drops(provider, job).iter().for_each(|field| dropped.add(field));
    priced_is_sent(model, &dropped)
}

/// What a route would be asked.
fn job<'a>(plan: &'a ImagePlan, model: &'a Model, route: &'a Route, files: &'a [PictureFile]) -> ImageJob<'a> {
    ImageJob {
        plan,
        model: &route.upstream_model,
        api: &model.image.api,
        files,
        sends_format: false,
        streams: false,
        n: plan.n,
        external_id: "",
        drawn: [0; 16],
    }
}

/// A field is named as the caller knows it.
fn in_words_of(predicts: bool, mut refusal: Refusal) -> Refusal {
    let named = refusal.param.clone().filter(|_| predicts);
    if let Some((ours, theirs)) = named.and_then(|ours| predicted_name(&ours).map(|theirs| (ours, theirs))) {
        refusal.message = refusal.message.replace(&format!("`{ours}`"), &format!("`{theirs}`"));
        refusal.param = Some(theirs.to_owned());
    }
    refusal
}

impl Priced for ImageAsk {
    fn model(&self) -> &str {
        &self.model
    }

    fn endpoint_type(&self) -> &'static str {
        ENDPOINT_TYPE
    }

    fn fits(&self, _: &Fetcher, serving: &Serving, model: &Model) -> Result<(), Refusal> {
        self.fits_routes(&[], serving, model)
    }

    /// Never more than was asked for: what comes beyond that is neither handed over nor charged.
    fn need(&self, _: &Model) -> Result<Need, Refusal> {
        let plan = self.plan()?;
        Ok(Need {
            most: Counters::images(plan.n),
            sized_by: "n",
            depends_on: &[(Face::PerCall, "how many of the pictures come out well")],
            ..Need::default()
        })
    }

    /// What costs more at the provider is in the price, whatever else the request asks for: the
    /// first tier that applies may go by something else.
    fn sold_at(&self, price: &Price) -> Result<(), Refusal> {
        let Some(option) = self.plan()?.charged_extra.iter().find(|option| !price.goes_by(option)) else {
            return Ok(());
        };
        let text = format!(
            "`{option}` is charged extra by the provider and has no price for this model beside the rest of the request."
        );
        Err(Refusal::about(Code::UnsupportedValue, option, text))
    }

    fn drops(&self, _: &Fetcher, serving: &Serving, model: &Model) -> Dropped {
        let mut dropped = Dropped::default();
        let Ok(plan) = &self.plan else { return dropped };
        for route in &model.routes {
            let Some(provider) = serving.providers.get(&route.provider) else { continue };
            let Some(maker) = provider.kind.image else { continue };
            let job = job(plan, model, route, &[]);
            if maker.create(&Asking { provider, now: 0 }, &job).is_ok() {
                maker.drops(provider, &job).iter().for_each(|field| dropped.add(field));
            }
        }
        dropped
    }

    fn attribute(&self, path: &str) -> Option<Cow<'_, str>> {
        self.plan.as_ref().ok()?.attribute(path)
    }

    /// A stated number of pictures.
    fn metered(&self, stated: Counters) -> Counters {
        if stated.calls == 0 { Counters::default() } else { Counters::images(stated.calls) }
    }
}

/// What the catalog sells.
fn rules(serving: &Serving, model: &Model, links: bool) -> ImageRules {
    let table = &model.image;
    let usual = model.default_response_format.as_deref().and_then(PictureFormat::named);
    let without = if table.base64_only { PictureFormat::Base64 } else { PictureFormat::Url };
    ImageRules {
        most: table.most.unwrap_or_else(|| usual_most(serving, model)),
        default_size: table.default_size.clone(),
        sizes: sold(model, "size", &table.sizes, table.default_size.as_deref()),
        default_quality: table.default_quality.clone(),
        qualities: sold(model, "quality", &table.qualities, table.default_quality.as_deref()),
        format: usual.unwrap_or(without),
        base64_only: table.base64_only,
        links,
        partials: table.partial_images,
        sources: table.edit_images,
        masks: table.masks,
        prompt: table.prompt_characters,
        one_price: table.one_price.clone(),
        tiers: model.tier_parameters().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
    }
}

/// As many pictures as one of the model's makers makes, where the catalog does not say.
fn usual_most(serving: &Serving, model: &Model) -> u64 {
    let providers = model.routes.iter().filter_map(|route| serving.providers.get(&route.provider));
    let most = providers.filter_map(|one| Some(one.kind.image?.limits(one, &model.image.api).most)).max();
    most.unwrap_or(ImageTable::USUAL_MOST).min(ImageTable::USUAL_MOST)
}

/// The values of a parameter that are on sale: those that are listed, else those that the price
/// knows. Any other would be sold at the base price, however dear it is.
fn sold(model: &Model, parameter: &str, listed: &[String], usual: Option<&str>) -> Vec<String> {
    let mut sold = listed.to_vec();
    let priced: Vec<&str> =
        model.tier_parameters().filter(|(name, _)| *name == parameter).map(|(_, value)| value).collect();
    if sold.is_empty() && !priced.is_empty() {
        sold.extend(usual.into_iter().chain(priced).map(str::to_owned));
        sold.dedup();
    }
    sold
}
