"""Records of workflows: Python's jsonschema on the published schema, and the gateway, come to the same verdicts. And the lines of
docs/workflows.md, run as they stand.

Records are made from a number by walking the schema, so a field that is added there is tried here. Python's `$` also
matches before a final line break, so no text ends in one.
"""

import copy
import json
import os
import random
import re
import subprocess
import time

import pytest

if os.environ.get("TOLLGATE_SDKS") != "newest":
    pytest.skip("jsonschema is among the newest pins only", allow_module_level=True)

import jsonschema  # noqa: E402

from house import ROOT, executable  # noqa: E402

SAMPLES = {"string": "x", "number": 1.5, "boolean": True, "null": None, "array": [], "object": {}}
MATCHING = {
    "^[a-z0-9]+(?:-[a-z0-9]+)*$": ["a", "clip-2", "0-0"],
    "^[a-z]{2}(?:-[a-z]{2})?$": ["en", "de-at"],
    "^[a-z][a-z0-9_]*$": ["a", "in_1"],
    "^CA-[0-9]{3}$": ["CA-000", "CA-917"],
    "^[0-9]{4}-[0-9]{2}-[0-9]{2}$": ["2026-11-16"],
    "^[0-9a-f]{7,40}$": ["0123456", "f" * 40],
    "^[0-9a-f]{64}$": ["0" * 64],
    "^/.*$": ["/", "/v1/x y"],
}
OTHER_TEXTS = ["", "A b", "é!", "-x-", "CA-1", "0-0-", "a--b", "/\nx", "ABCDEF0", "EN", "2026-1-1", "_a"]


def resolved(root, schema):
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    return schema


def made(root, schema, dice):
    """A value that the schema allows."""
    schema = resolved(root, schema)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return dice.choice(schema["enum"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    kind = dice.choice(kinds)
    if kind == "string":
        return dice.choice(MATCHING[schema["pattern"]] if "pattern" in schema else ["x", "日本 \"q\"", "line\nbreak ."])
    if kind == "array":
        count = schema.get("minItems", 0) + dice.randrange(3)
        items = [made(root, schema.get("items", {"type": "integer"}), dice) for _ in range(count)]
        if not schema.get("uniqueItems"):
            return items
        unique = [item for at, item in enumerate(items) if item not in items[:at]]
        return unique if len(unique) >= schema.get("minItems", 0) else made(root, schema, dice)
    if kind == "object":
        names = schema.get("properties", {})
        return {name: made(root, inner, dice) for name, inner in names.items() if name in schema["required"] or dice.random() < 0.5}
    return {"boolean": dice.random() < 0.5, "integer": dice.choice([0, -7, 1.0]), "null": None}[kind]


def changed(record, path, value, remove=False):
    record = copy.deepcopy(record)
    if not path:
        return value
    place = record
    for step in path[:-1]:
        place = place[step]
    if remove:
        place.pop(path[-1], None)
    else:
        place[path[-1]] = value
    return record


def variants(root, schema, record, path=()):
    """The record with one value changed: most of them are violations, whichever word of the schema they are of."""
    schema = resolved(root, schema)
    value = record
    for step in path:
        value = value[step]
    for sample in SAMPLES.values():
        yield changed(record, path, sample)
    if isinstance(value, str) or "enum" in schema or "const" in schema:
        for text in OTHER_TEXTS:
            yield changed(record, path, text)
    if isinstance(value, list) and value:
        yield changed(record, path, value[:-1])
        yield changed(record, path, value[:1])
        yield changed(record, path, [*value, value[-1]])
        for at in range(len(value)):
            if "items" in schema:
                yield from variants(root, schema["items"], record, (*path, at))
    if isinstance(value, dict):
        yield changed(record, (*path, "surplus"), None)
        for name, inner in schema.get("properties", {}).items():
            if name in value:
                yield changed(record, (*path, name), None, remove=True)
                yield from variants(root, inner, record, (*path, name))


def verdicts(folder, records):
    """What the gateway says of each record: whether it fits the schema, and the paths of what is wrong."""
    files = []
    for number, record in enumerate(records):
        file = folder / f"{number}.json"
        file.write_text(json.dumps(record, ensure_ascii=False), encoding="utf-8")
        files.append(str(file))
    found = []
    for at in range(0, len(files), 200):
        command = [executable(), "workflow", "check", "--json", *files[at : at + 200]]
        found += json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)["records"]
    assert [one["file"] for one in found] == files
    return [one["by_schema"] for one in found]


@pytest.fixture(scope="module")
def published(house):
    return house.get("/api/workflows/schema")


def test_generated_records_get_the_same_verdict(published, tmp_path):
    dice = random.Random(7)
    validator = jsonschema.Draft202012Validator(published)
    jsonschema.Draft202012Validator.check_schema(published)
    valid = [made(published, published, dice) for _ in range(500)]
    assert all(validator.is_valid(record) for record in valid)
    assert all(verdicts(tmp_path, valid))


def test_single_violations_get_the_same_verdict(published, tmp_path):
    dice = random.Random(8)
    validator = jsonschema.Draft202012Validator(published)
    records = [record for _ in range(2) for record in variants(published, published, made(published, published, dice))]
    ours, theirs = verdicts(tmp_path, records), [validator.is_valid(record) for record in records]
    different = [(records[at], theirs[at]) for at in range(len(records)) if ours[at] != theirs[at]]
    assert different == []
    assert theirs.count(False) >= 500 and theirs.count(True) >= 20, (theirs.count(False), theirs.count(True))


def verified(house, slug):
    """Locks a workflow and has its fixture run, on an account of its own."""
    account, _ = house.account(f"verifies {slug}", paid="20")
    key = house.new_key(account)["key_id"]
    house.cli("workflow", "lock", slug, "--reason", "a test")
    proof = house.cli("workflow", "verify", slug, "--account", account, "--key", key, "--max-cost", "10", "--reason", "a test")
    assert proof["verified"], proof


def test_the_curl_lines_of_the_page(house, tmp_path):
    page = (ROOT / "docs/workflows.md").read_text(encoding="utf-8")
    (block,) = [block for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if block.startswith("curl ")]
    upload, quote, begin, show = re.split(r"\n(?=curl )", block.strip())
    verified(house, "article-to-narration")
    recording = ROOT / "catalog/workflows/meeting-to-minutes/recording.wav"
    (tmp_path / "meeting.wav").write_bytes(recording.read_bytes())
    _, key = house.account("reads the page", paid="5")
    environment = os.environ | {"URL": house.base_url, "KEY": key}

    def run(lines, name="", value=""):
        assert name in lines, (name, lines)
        lines = lines.replace(name, value) if name else lines
        assert "…" not in lines and "DIGEST" not in lines, lines
        script = lines.replace("curl ", "curl -sSf ", 1)
        done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, timeout=60, cwd=tmp_path)
        assert done.returncode == 0, (lines, done.stdout, done.stderr)
        return json.loads(done.stdout)

    asset = run(upload)
    assert asset["id"].startswith("asset_") and asset["content_type"] == "audio/wav", asset
    offer = run(quote)
    assert offer["executable"] and offer["confirm"]["items"] == [], offer
    begun = run(begin, "DIGEST", offer["confirm"]["privacy"])
    again = run(begin, "DIGEST", offer["confirm"]["privacy"])
    assert begun["id"] == again["id"] and begun["status"] in ("running", "waiting", "completed"), begun
    deadline = time.monotonic() + 120
    while (shown := run(show, "run_…", begun["id"]))["status"] != "completed":
        assert shown["status"] in ("running", "waiting") and time.monotonic() < deadline, shown
        time.sleep(0.05)
    assert [step["status"] for step in shown["steps"]] == ["done", "done"], shown
    calls = [house.usage(step["call_id"], key) for step in shown["steps"]]
    assert {row["run_id"] for row in calls} == {begun["id"]}
    assert sum(row["charge_nano_usd"] for row in calls) == shown["charged_nano_usd"]
