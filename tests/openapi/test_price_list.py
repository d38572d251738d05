"""The price list against the schema that the gateway publishes of it, for anybody and for an account, and read as tools of other
makes read it."""

import json
import urllib.request
from decimal import Decimal

import jsonschema

from conftest import house

DRAFT = jsonschema.Draft202012Validator


def anybody(path):
    with urllib.request.urlopen(house().base_url + path, timeout=30) as reply:
        return json.load(reply, parse_float=Decimal)


def test_every_record_fits_the_published_schema():
    schema = anybody("/api/pricing/schema")
    DRAFT.check_schema(schema)
    specs = DRAFT({"$ref": "#/$defs/specs", "$defs": schema["$defs"]})
    types = set()
    for page in (anybody("/api/pricing"), house().get("/api/pricing")):
        DRAFT(schema).validate(page)
        assert len(page["data"]) > 30
        for record in page["data"]:
            inner = json.loads(record["specs"])
            specs.validate(inner)
            types.add(inner["type"])
    assert {"llm", "image", "video", "asr", "tts", "music", "decision", "embedding", "rerank"} <= types


def test_a_wrong_record_does_not_fit():
    schema, page = anybody("/api/pricing/schema"), anybody("/api/pricing")
    for change in ({"quota_type": 2}, {"model_ratio": "1.5"}, {"tasks": ["chatting"]}, {"colour": "red"}):
        wrong = page | {"data": [page["data"][0] | change]}
        assert not DRAFT(schema).is_valid(wrong), change


def test_prices_of_the_model_list_are_decimal_texts_of_the_same_book():
    """As clients of OpenRouter's list read one: USD per token as text."""
    records = {one["model_name"]: one for one in house().get("/api/pricing")["data"]}
    for model in house().get("/v1/models")["data"]:
        record, price = records[model["id"]], model["pricing"]
        if record["billing_unit"] == "tokens":
            per_million = Decimal(str(record["model_ratio"])) * 2 * Decimal(str(record["billing_rate"]))
            assert Decimal(price["prompt"]) * 10**6 == per_million, model["id"]
        assert all(Decimal(text) >= 0 for text in price.values())
        assert isinstance(model["architecture"]["input_modalities"], list)
