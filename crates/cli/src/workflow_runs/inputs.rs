//! The inputs of a run as they are typed, read by what the record says of them; files are uploaded.

use super::named;
use crate::args::RunInputArgs;
use crate::http::Http;
use crate::real;
use anyhow::{Context as _, bail};
use serde_json::{Map, Value};
use std::path::Path;
use tollgate_catalog::form::did_you_mean;

/// The largest file that is uploaded, as the gateway takes it.
const LARGEST: u64 = 100 << 20;

pub async fn given(http: &Http, asked: &RunInputArgs) -> anyhow::Result<Value> {
    named("name of a workflow", &asked.slug)?;
    let record = http.send(&format!("/api/workflows/{}", asked.slug), None).await?.json()?;
    let known = record["inputs"].as_array().cloned().unwrap_or_default();
    let mut inputs = Map::new();
    // Files are looked at before the first of them is sent.
    for one in &asked.files {
        let (input, file) = split(&known, one, "--file photo=photo.png")?;
        let size = std::fs::metadata(file).with_context(|| file.to_owned())?.len();
        if input["type"] != "asset" || size > LARGEST {
            bail!("--file {one}: it takes a file of at most {} MiB for an input of the type asset", LARGEST >> 20);
        }
    }
    for one in &asked.inputs {
        let (input, text) = split(&known, one, "--input seconds=5")?;
        let value = value(&input, text).with_context(|| format!("--input {one}"))?;
        put(&mut inputs, &input, value)?;
    }
    for one in &asked.files {
        let (input, file) = split(&known, one, "--file photo=photo.png")?;
        let asset = uploaded(http, Path::new(file)).await?;
        put(&mut inputs, &input, asset)?;
    }
    Ok(Value::Object(inputs))
}

fn split<'t>(known: &[Value], one: &'t str, example: &str) -> anyhow::Result<(Value, &'t str)> {
    let (name, text) = one.split_once('=').with_context(|| format!("{one}: write it as {example}"))?;
    let names = || known.iter().filter_map(|input| input["id"].as_str());
    let input = known.iter().find(|input| input["id"] == name).cloned().with_context(|| {
        let all = names().collect::<Vec<_>>().join(", ");
        format!("{name:?} is not an input{}; there are: {all}", did_you_mean(name, names()))
    })?;
    Ok((input, text))
}

fn put(inputs: &mut Map<String, Value>, input: &Value, value: Value) -> anyhow::Result<()> {
    let name = input["id"].as_str().unwrap_or_default();
    if inputs.insert(name.to_owned(), value).is_some() {
        bail!("the input {name:?} is given twice");
    }
    Ok(())
}

/// A text as a value of the input's type. What is allowed, the gateway says.
fn value(input: &Value, text: &str) -> anyhow::Result<Value> {
    let text = match text.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).with_context(|| file.to_owned())?,
        None => text.to_owned(),
    };
    let bare = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Ok(match input["type"].as_str().unwrap_or_default() {
        "integer" => Value::from(text.trim().parse::<i64>().context("write a whole number")?),
        "boolean" => Value::from(text.trim().parse::<bool>().context("write true or false")?),
        "enum" => {
            let allowed = input["allowed_values"].as_array().cloned().unwrap_or_default();
            allowed.into_iter().find(|value| bare(value) == text).unwrap_or_else(|| Value::from(text))
        }
        _ => Value::from(text),
    })
}

/// The id of a file that is uploaded.
async fn uploaded(http: &Http, path: &Path) -> anyhow::Result<Value> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let mut random = [0; 16];
    real::fill(&mut random);
    let boundary = format!("tollgate-{:032x}", u128::from_le_bytes(random));
    let head = format!("--{boundary}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"file\"\r\n\r\n");
    let body = [head.as_bytes(), &bytes, format!("\r\n--{boundary}--\r\n").as_bytes()].concat();
    let kind = format!("multipart/form-data; boundary={boundary}");
    let reply = http.send_as("/v1/workflows/assets", Some((&kind, body.into())), None).await?;
    let asset = reply.json().with_context(|| path.display().to_string())?;
    Ok(asset["id"].clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_of_the_type_of_their_input() {
        let input = |kind: &str, allowed: Value| json!({ "id": "x", "type": kind, "allowed_values": allowed });
        for (kind, allowed, text, expected) in [
            ("string", json!([]), "5", json!("5")),
            ("asset", json!([]), "asset_1", json!("asset_1")),
            ("integer", json!([]), "-5", json!(-5)),
            ("boolean", json!([]), "true", json!(true)),
            ("enum", json!(["5", 10]), "5", json!("5")),
            ("enum", json!(["5", 10]), "10", json!(10)),
            ("enum", json!(["5", 10]), "moon", json!("moon")),
        ] {
            assert_eq!(value(&input(kind, allowed), text).unwrap(), expected, "{kind} {text}");
        }
        for (kind, text) in [("integer", "five"), ("boolean", "yes"), ("string", "@/no/such/file")] {
            assert!(value(&input(kind, json!([])), text).is_err(), "{kind} {text}");
        }
    }

    #[test]
    fn a_name_that_is_no_input_is_refused_with_those_that_are() {
        let known = [json!({ "id": "article" }), json!({ "id": "voice" })];
        let wrong = split(&known, "artical=x", "e").unwrap_err().to_string();
        assert!(wrong.contains("article") && wrong.contains("voice"), "{wrong}");
        assert!(split(&known, "article", "article=x").unwrap_err().to_string().contains("article=x"));
        assert_eq!(split(&known, "voice=a=b", "e").unwrap().1, "a=b");
    }
}
