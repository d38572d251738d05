//! Packages and whole folders of workflows: what is read, and every mistake with its place.

use super::records::sample;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tollgate_catalog::form::Mistakes;
use tollgate_workflows::{
    MAX_WORKFLOWS, OutputFrom, RunSteps, StepModel, StepOutput, Workflow, WorkflowFiles, load_workflows,
};

const PACKAGE: &str = r#"version = "2026-11-16.1"
acceptance = [["nonempty:prompt.text"], ["playable:clip.video", "max_seconds:clip.video:11"]]

[[step]]
name = "prompt"
endpoint = "/v1/chat/completions"
model = { query = true }
body = { messages = [{ role = "user", content = "Describe: {{inputs.style}}" }], max_tokens = 200, temperature = 0.5 }
gives = { text = "/choices/0/message/content" }
check = ["nonempty:text", "json_schema:text"]
schema = { text = { type = "object", required = ["shots"] } }

[[step]]
name = "clip"
endpoint = "/v1/videos/{id}/content"
path = { id = "{{steps.prompt.text}}" }
model = "clip-model"
body = { seconds = "{{inputs.seconds}}", prompt = "{{steps.prompt.text}}" }
gives = { video = "body" }
"#;

fn files(package: &str) -> WorkflowFiles {
    let mut record = sample();
    record["acceptance_checks"] = json!(["It says something.", "It plays."]);
    record["runtime_binding"]["endpoint"] = json!("/v1/workflows/clip/runs");
    WorkflowFiles {
        name: "clip".to_owned(),
        record: ("workflows/clip.json".to_owned(), record.to_string()),
        package: Some(("workflows/clip/package.toml".to_owned(), package.to_owned())),
        ..WorkflowFiles::default()
    }
}

fn load(files: &[WorkflowFiles]) -> Result<BTreeMap<String, Arc<Workflow>>, Vec<String>> {
    let mistakes = Mistakes::default();
    let found = load_workflows(files, &mistakes);
    mistakes.result(found).map_err(|list| list.iter().map(ToString::to_string).collect())
}

#[test]
fn a_package_is_read_with_its_record() {
    let all = load(&[files(PACKAGE)]).unwrap();
    let package = all["clip"].package.as_ref().unwrap();
    assert_eq!((package.version.as_str(), package.text.as_str()), ("2026-11-16.1", PACKAGE));
    assert_eq!(package.steps.iter().map(|step| &*step.name).collect::<Vec<_>>(), ["prompt", "clip"]);
    assert_eq!(package.steps[0].model, Some(StepModel::Query));
    assert_eq!(package.steps[1].model, Some(StepModel::Named("clip-model".to_owned())));
    assert_eq!(package.steps[0].gives["text"], OutputFrom::At("/choices/0/message/content".to_owned()));
    assert_eq!(package.step("clip").unwrap().gives["video"], OutputFrom::Body);
    assert_eq!(package.steps[0].body["temperature"], json!(0.5));
    assert_eq!(package.acceptance.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(package.acceptance[1][0].about, "clip.video");
}

#[test]
fn every_mistake_of_a_package_names_its_field() {
    let step = "[[step]]\nname = \"x\"\nendpoint = \"/v1/x\"\ngives = { a = \"/a\" }\n";
    let long = format!("gives = {{ video = \"body\" }}\n{}", step.repeat(20));
    for (from, to, expected) in [
        ("version = \"2026-11-16.1\"\n", "", "version: is missing"),
        ("name = \"clip\"", "name = \"prompt\"", "step[1].name: is the name of a step before"),
        ("name = \"clip\"", "name = \"Clip!\"", "step[1].name: must be of small letters"),
        ("endpoint = \"/v1/chat/completions\"", "endpoint = \"https://x\"", "step[0].endpoint: must begin with /"),
        ("path = { id = \"{{steps.prompt.text}}\" }\n", "", "step[1].path: must have a value for each part"),
        ("path = { id =", "path = { other =", "step[1].path: must have a value for each part"),
        ("{ query = true }", "{ query = false }", "step[0].model: must be a name"),
        (
            "{ query = true }",
            "{ input = \"stile\" }",
            "step[0].model: \"stile\" is not the id of an input; did you mean \"style\"?",
        ),
        (
            "{{inputs.style}}",
            "{{inputs.moon}}",
            "step[0].body: at body.messages[0].content: \"moon\" is not the id of an input",
        ),
        ("{{inputs.style}}", "{{style | upper}}", "step[0].body: at body.messages[0].content: has {{style | upper}}"),
        ("{{inputs.style}}", "{{steps.clip.video}}", "there is no step \"clip\" before this one"),
        (
            "prompt = \"{{steps.prompt.text}}\"",
            "prompt = \"{{steps.prompt.sound}}\"",
            "step \"prompt\" gives no \"sound\"",
        ),
        ("gives = { video = \"body\" }", "gives = { video = \"data\" }", "step[1].gives: \"video\" must be"),
        ("gives = { video = \"body\" }", "", "step[1].gives: must name at least one output"),
        ("\"nonempty:text\"", "\"perfect:text\"", "step[0].check: \"perfect:text\" is none of"),
        ("\"nonempty:text\"", "\"nonempty:sound\"", "step[0].check: \"nonempty:sound\": there is no output"),
        (
            "schema = { text = { type = \"object\", required = [\"shots\"] } }",
            "",
            "step[0].check: \"json_schema:text\": its step has no schema",
        ),
        ("required = [\"shots\"]", "maximum = 3", "step[0].schema: at text.maximum: is not a keyword"),
        ("[\"nonempty:prompt.text\"], ", "", "acceptance: must have one list for each of the record's 2"),
        ("[\"nonempty:prompt.text\"], ", "[], ", "acceptance: a check that checks nothing"),
        ("\"nonempty:prompt.text\"", "\"nonempty:text\"", "acceptance: \"nonempty:text\": there is no output"),
        ("model = \"clip-model\"", "model = \"clip-model\"\ncode = \"print(1)\"", "step[1].code: is not a known key"),
        ("version =", "version ==", "is not TOML"),
        ("gives = { video = \"body\" }\n", &long, "step: there must be 1 to 20 of them, not 22"),
    ] {
        assert!(PACKAGE.contains(from), "{from}");
        let found = load(&[files(&PACKAGE.replace(from, to))]).unwrap_err();
        assert!(found.iter().any(|one| one.contains(expected)), "{from} -> {to}: {found:#?}");
        assert!(found.iter().all(|one| one.starts_with("workflows/clip/package.toml:")), "{found:?}");
    }
}

#[test]
fn steps_and_the_endpoint_of_runs_belong_together() {
    let mut alone = files(PACKAGE);
    alone.package = None;
    let found = load(&[alone]).unwrap_err();
    assert_eq!(found, ["workflows/clip.json:1: runtime_binding.endpoint: needs the steps in clip/package.toml"]);
    let mut elsewhere = files(PACKAGE);
    elsewhere.record.1 = elsewhere.record.1.replace("/v1/workflows/clip/runs", "/v1/videos");
    let found = load(&[elsewhere]).unwrap_err();
    assert_eq!(
        found,
        ["workflows/clip.json:1: runtime_binding.endpoint: must be /v1/workflows/clip/runs: there is a package"]
    );
}

#[test]
fn a_fixture_is_held_to_its_record() {
    let with = |text: &str| {
        let mut files = files(PACKAGE);
        files.fixture = Some(("workflows/clip/fixture.json".to_owned(), text.to_owned()));
        files.assets = vec!["photo.png".to_owned()];
        load(&[files]).map(|all| all["clip"].fixture.clone().map(Value::Object))
    };
    assert_eq!(with(r#"{"inputs": {"photo": "photo.png"}}"#), Ok(Some(json!({ "photo": "photo.png" }))));
    for (text, expected) in [
        ("{", "workflows/clip/fixture.json:1: is not JSON"),
        ("[]", "workflows/clip/fixture.json:1: inputs: must be an object"),
        (
            r#"{"inputs": {"photo": "photo.png"}, "more": 1}"#,
            "workflows/clip/fixture.json:1: more: is not a field of a fixture",
        ),
        (
            "{\"inputs\": {\n\"photo\": \"../photo.png\"}}",
            "workflows/clip/fixture.json:2: inputs.photo: must be a file beside the fixture",
        ),
        (r#"{"inputs": {}}"#, "workflows/clip/fixture.json:1: inputs.photo: is required"),
    ] {
        assert_eq!(with(text), Err(vec![expected.to_owned()]), "{text}");
    }
}

#[test]
fn a_record_without_a_package_has_its_checks_with_its_fixture() {
    let with = |acceptance: &str| {
        let mut files = files(PACKAGE);
        let mut record: Value = serde_json::from_str(&files.record.1).unwrap();
        record["runtime_binding"]["endpoint"] = json!("/v1/videos");
        record["acceptance_checks"] = json!(["There is an answer."]);
        (files.record.1, files.package) = (record.to_string(), None);
        let text = format!("{{\"inputs\": {{\"photo\": \"photo.png\"}}{acceptance}}}");
        files.fixture = Some(("f.json".to_owned(), text));
        files.assets = vec!["photo.png".to_owned()];
        load(&[files])
    };
    let inputs = || BTreeMap::from([("photo".to_owned(), json!("asset_1"))]);
    let accepts = |acceptance: &str, result: Value| {
        let all = with(acceptance).unwrap();
        let workflow = &all["clip"];
        let steps = RunSteps::of(workflow, &inputs()).unwrap();
        let given = BTreeMap::from([("result".to_owned(), StepOutput::Json(result))]);
        workflow.unaccepted(&steps, &BTreeMap::from([("call".to_owned(), given)]))
    };
    let checked = r#", "acceptance": [["nonempty:call.result"]]"#;
    assert_eq!(accepts(checked, json!({ "id": "task_1" })), None);
    assert!(
        accepts(checked, json!({})).is_some_and(|why| why.contains("There is an answer.") && why.contains("empty"))
    );
    let unchecked = accepts("", json!({ "id": "task_1" })).unwrap();
    assert!(unchecked.contains("nothing checks it"), "{unchecked}");
    for (acceptance, expected) in [
        (", \"acceptance\": []", "acceptance: must be 1 lists, one for each acceptance check of the record"),
        (", \"acceptance\": [[]]", "acceptance[0]: must be a list of checks such as nonempty:call.result"),
        (", \"acceptance\": [[\"nonempty:x\"]]", "acceptance[0][0]: must be about call.result, and has no schema"),
        (
            ", \"acceptance\": [[\"json_schema:call.result\"]]",
            "acceptance[0][0]: must be about call.result, and has no schema",
        ),
    ] {
        assert_eq!(with(acceptance).unwrap_err(), [format!("f.json:1: {expected}")], "{acceptance}");
    }
}

#[test]
fn ids_are_unique_and_there_are_not_too_many() {
    let named = |name: &str, id: &str| {
        let mut files = files(PACKAGE);
        let mut record: Value = serde_json::from_str(&files.record.1).unwrap();
        (record["slug"], record["workflow_id"]) = (json!(name), json!(id));
        record["runtime_binding"]["endpoint"] = json!(null);
        files.record = (format!("{name}.json"), record.to_string());
        (files.name, files.package) = (name.to_owned(), None);
        files
    };
    assert_eq!(load(&[named("a", "x"), named("b", "y")]).unwrap().len(), 2);
    assert_eq!(
        load(&[named("a", "x"), named("b", "x")]).unwrap_err(),
        ["b.json:1: workflow_id: is that of a.json too"]
    );
    let many: Vec<WorkflowFiles> = (0..=MAX_WORKFLOWS).map(|at| named(&format!("n{at}"), &format!("i{at}"))).collect();
    assert_eq!(load(&many).unwrap_err(), ["n500.json:1: there are more than 500 workflows"]);
    assert_eq!(load(&many[1..]).unwrap().len(), MAX_WORKFLOWS);
}
