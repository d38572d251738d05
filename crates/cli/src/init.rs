//! `init`: four questions, and a configuration with a catalog that works. Nothing that is there is
//! overwritten, and nothing is left behind when it fails.

use crate::args::{ActorArgs, EnableArgs, InitArgs};
use crate::models;
use crate::show::Output;
use serde_json::json;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use tollgate_catalog::Money;
use tollgate_catalog::import::{Margin, shipped};
use tollgate_gateway::settings::{preset, presets};

const LISTEN: &str = "127.0.0.1:8080";
const DATA: &str = "data";
const MARGIN: &str = "10%";
const CATALOG: &str = "catalog";

/// What is to be written.
struct Plan {
    listen: String,
    data: String,
    provider: String,
    key_env: Option<String>,
    base_url: Option<String>,
    margin: String,
    own: Option<OwnModel>,
}

/// A model of a server that is in no list.
struct OwnModel {
    name: String,
    input: u64,
    output: u64,
}

pub fn init(config: &Path, asked: &InitArgs, out: &Output) -> anyhow::Result<ExitCode> {
    if config.exists() {
        anyhow::bail!("{} is there already: nothing was changed", config.display());
    }
    let plan = questions(asked)?;
    let folder = config.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder.join(CATALOG))?;
    std::fs::write(config, plan.config())?;
    match sell(config, folder, &plan) {
        Ok((file, models)) => {
            out.say(&json!({ "config": config.display().to_string(), "catalog": file, "models": models }), || {
                plan.in_words(config, &file, models)
            });
            Ok(ExitCode::SUCCESS)
        }
        Err(why) => {
            std::fs::remove_file(config)?;
            Err(why)
        }
    }
}

/// What has not been given as an option is asked for, at a terminal; elsewhere it is as usual.
fn questions(asked: &InitArgs) -> anyhow::Result<Plan> {
    let ask = !asked.yes && std::io::stdin().is_terminal();
    if ask {
        eprintln!("Four questions; Enter takes what is in brackets.");
    }
    let answer = |given: &Option<String>, question: &str, usual: &str| -> anyhow::Result<String> {
        match given {
            Some(given) => Ok(given.clone()),
            None if ask => asked_for(question, usual),
            None => Ok(usual.to_owned()),
        }
    };
    let data = answer(&asked.data, "Where is data stored? A folder, or a postgres:// address", DATA)?;
    let listen = answer(&asked.listen, "Where do clients connect?", LISTEN)?;
    let provider = answer(&asked.provider, "Which provider? (`tollgate provider list --all` names them)", "")?;
    if provider.is_empty() {
        anyhow::bail!("which provider? --provider openai, or another name of `tollgate provider list --all`");
    }
    if asked.base_url.is_none() && preset(&provider).is_none() {
        let hint = tollgate_catalog::form::did_you_mean(&provider, presets().iter().map(|row| row.id.as_str()));
        anyhow::bail!("no provider is called {provider:?}{hint}; a server of your own needs --base-url");
    }
    let usual = preset(&provider).map(|row| row.key_env.clone()).unwrap_or_default();
    let key_env = match (&asked.key_env, asked.base_url.is_some() || usual.is_empty()) {
        (Some(given), _) => Some(given.clone()),
        (None, true) => None,
        (None, false) => Some(answer(&None, "In which environment variable is its key?", &usual)?),
    };
    let margin = answer(&asked.margin, "What do you put on top of its list prices?", MARGIN)?;
    margin.parse::<Margin>().map_err(|bad| anyhow::anyhow!("--margin {margin} {bad}"))?;
    let own =
        asked.model.as_ref().map(|name| own_model(name, asked.price.as_deref().unwrap_or_default())).transpose()?;
    Ok(Plan { listen, data, provider, key_env, base_url: asked.base_url.clone(), margin, own })
}

fn asked_for(question: &str, usual: &str) -> anyhow::Result<String> {
    let shown = if usual.is_empty() { String::new() } else { format!(" [{usual}]") };
    eprint!("{question}{shown} ");
    std::io::stderr().flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let line = line.trim();
    Ok(if line.is_empty() { usual.to_owned() } else { line.to_owned() })
}

fn own_model(name: &str, price: &str) -> anyhow::Result<OwnModel> {
    let micro = |text: &str| -> Option<u64> {
        let nano = text.trim().parse::<Money>().ok()?.nano();
        (nano >= 0 && nano % 1_000 == 0).then(|| u64::try_from(nano / 1_000).ok()).flatten()
    };
    let both = price.split_once('/').and_then(|(input, output)| Some((micro(input)?, micro(output)?)));
    let (input, output) = both.ok_or_else(|| {
        anyhow::anyhow!("--price {price}: write USD per million tokens of input and output, as in 0.50/1.50")
    })?;
    Ok(OwnModel { name: name.to_owned(), input, output })
}

/// The catalog file, and how many models it sells.
fn sell(config: &Path, folder: &Path, plan: &Plan) -> anyhow::Result<(String, usize)> {
    if let Some(own) = &plan.own {
        let path = folder.join(CATALOG).join("models.toml");
        if path.exists() {
            anyhow::bail!("{} is there already: nothing was changed", path.display());
        }
        std::fs::write(&path, own.page(&plan.provider))?;
        return Ok((path.display().to_string(), 1));
    }
    if shipped(&plan.provider).is_err() {
        return Ok((folder.join(CATALOG).display().to_string(), 0));
    }
    let asked = EnableArgs {
        provider: plan.provider.clone(),
        margin: plan.margin.clone(),
        models: Vec::new(),
        route: None,
        accept: Vec::new(),
        dry_run: false,
        done: ActorArgs { reason: "the first configuration".to_owned(), actor: "command line".to_owned() },
    };
    let models = models::enable_quietly(config, &asked).map_err(|why| anyhow::anyhow!(why))?;
    Ok((folder.join(CATALOG).join(format!("{}.toml", plan.provider)).display().to_string(), models))
}

impl Plan {
    fn config(&self) -> String {
        let (folder, database) = match self.data.contains("://") {
            true => (DATA, self.data.as_str()),
            false => (self.data.as_str(), "sqlite"),
        };
        let quoted = |text: &str| format!("{text:?}");
        let mut text = format!(
            "# Written by `tollgate init`. `tollgate check --print-default` prints every setting with its default.\n\
             listen = {}\ndata_dir = {}\ncatalog_dir = {}\ndatabase = {}\n\n[provider.{}]\n",
            quoted(&self.listen),
            quoted(folder),
            quoted(CATALOG),
            quoted(database),
            self.provider,
        );
        match &self.base_url {
            Some(url) => {
                let known = preset(&self.provider).map(|row| format!("preset = {}\n", quoted(&row.id)));
                text += &known.unwrap_or_else(|| "kind = \"openai\"\n".to_owned());
                text += &format!("base_url = {}\n", quoted(url));
            }
            None => text += &format!("preset = {}\n", quoted(&self.provider)),
        }
        if let Some(variable) = &self.key_env {
            text += &format!("secret_env = {}\n", quoted(variable));
        }
        text
    }

    fn in_words(&self, config: &Path, file: &str, models: usize) -> String {
        let sold = match (models, &self.own) {
            (0, _) => format!("nothing is on sale yet: put models into {file} (docs/adding-a-provider.md)"),
            (_, Some(own)) => format!("{file} sells {}", own.name),
            (models, None) => format!("{file} sells {models} models at the list price and {}", self.margin),
        };
        let key = self.key_env.as_ref().map(|variable| format!("  export {variable}=...\n")).unwrap_or_default();
        format!(
            "wrote {}\n{sold}\nnext:\n{key}  tollgate check\n  tollgate serve\n  tollgate account create me --trial 5     # in another terminal",
            config.display()
        )
    }
}

impl OwnModel {
    fn page(&self, provider: &str) -> String {
        format!(
            "# Written by `tollgate init`. catalog/demo.toml of the source explains every key.\n\
             [model.{:?}]\norigin = \"hand\"\nprice = {{ input = {}, output = {} }}\n\
             route = [{{ provider = {provider:?}, upstream_model = {:?} }}]\n",
            self.name, self.input, self.output, self.name
        )
    }
}
