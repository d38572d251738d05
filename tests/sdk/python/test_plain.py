"""Calls that are answered whole."""

import json
from fractions import Fraction

import openai
import pytest

from house import TWELVE, Till, price_of, usd


def ask(text="Hello there, gate!", **more):
    return {"model": "tollgate-demo", "messages": [{"role": "user", "content": text}], **more}


def test_a_call_is_answered_and_charged_exactly(house, client, till):
    raw = client.chat.completions.with_raw_response.create(**ask())
    reply = raw.parse()
    assert reply.choices[0].message.content == TWELVE
    assert reply.choices[0].message.role == "assistant"
    assert reply.choices[0].finish_reason == "stop"
    assert reply.object == "chat.completion"
    assert reply.model == "tollgate-demo", "the provider's own name for the model does not show"
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.total_tokens) == (3, 12, 15)
    # 3 × 2.70 + 12 × 13.50 USD per million, worked out by hand once
    call_id = raw.headers["x-request-id"]
    assert call_id.startswith("call_") and reply._request_id == call_id
    assert raw.headers["x-tollgate-charge-usd"] == "0.0001701"
    row = till.charged(call_id, "tollgate-demo", input=3, output=12)
    assert row["charge_nano_usd"] == 170_100
    assert row["status"] == 200 and row["endpoint"] == "/v1/chat/completions"


def test_an_account_that_never_paid_has_the_standard_price(house, client):
    account, key = house.account("on trial", trial="1")
    till = Till(house, key)
    raw = client.with_options(api_key=key).chat.completions.with_raw_response.create(**ask())
    assert raw.headers["x-tollgate-charge-usd"] == "0.000189"
    till.charged(raw.headers["x-request-id"], "tollgate-demo", input=3, output=12)
    assert house.balance(key)["trial_available_nano_usd"] == 1_000_000_000 - 189_000
    assert house.balance(key)["account_id"] == account


def test_what_the_provider_receives(house, client):
    mark = house.seen_by_provider()
    extra = {"an_unknown_field": {"deep": [1, 2.50, None, "é\u2028"]}}
    client.chat.completions.create(**ask(temperature=0.5, seed=7), extra_body=extra)
    [seen] = house.received(mark)
    assert seen["body"].pop("model") == "sim-plain"
    expected = {**ask(temperature=0.5, seed=7), **extra}
    del expected["model"]
    assert seen["body"] == expected, "everything but the model's name passes through"
    assert house.key not in json.dumps(seen), "the customer's key stays here"
    assert not any(name.startswith("x-stainless") for name in seen["headers"]), "nor does the client's luggage travel on"


def test_output_limit_and_several_choices(client, till):
    raw = client.chat.completions.with_raw_response.create(**ask("one two [[sim:tokens=40]]", max_completion_tokens=5, n=3))
    reply = raw.parse()
    assert [choice.index for choice in reply.choices] == [0, 1, 2]
    assert {choice.finish_reason for choice in reply.choices} == {"length"}
    assert reply.usage.completion_tokens == 15
    till.charged(raw.headers["x-request-id"], "tollgate-demo", input=3, output=15)


def test_content_in_parts(client, till):
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    parts = [{"type": "text", "text": "what is this"}, picture]
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": parts}]
    raw = client.chat.completions.with_raw_response.create(model="tollgate-demo", messages=messages)
    till.charged(raw.headers["x-request-id"], "tollgate-demo", input=5, output=12)


@pytest.mark.parametrize("scenario", ["split_utf8", "u2028"])
def test_every_character_survives(client, scenario):
    reply = client.chat.completions.create(**ask(f"[[sim:{scenario} tokens=6]]"))
    said = reply.choices[0].message.content
    assert ("東京" in said and "🙂" in said) if scenario == "split_utf8" else said == "a\u2028b c\u2029d e\u0085f a\u2028b c\u2029d e\u0085f"


def test_reasoning_is_output(client, till):
    raw = client.chat.completions.with_raw_response.create(**ask("why [[sim:tokens=4 reasoning=9]]", ) | {"model": "demo-reasoning"})
    reply = raw.parse()
    assert len(reply.choices[0].message.model_extra["reasoning_content"].split()) == 9
    assert reply.usage.completion_tokens == 13
    assert reply.usage.completion_tokens_details.reasoning_tokens == 9
    row = till.charged(raw.headers["x-request-id"], "demo-reasoning", input=3, output=4, reasoning=9)
    assert row["charge_nano_usd"] == 3 * 2_000 + 13 * 8_000


def test_cached_input_has_its_own_prices(client, till):
    raw = client.chat.completions.with_raw_response.create(**ask("[[sim:prompt=1001 cached=500 written=251 tokens=1]]") | {"model": "demo-cached"})
    details = raw.parse().usage.prompt_tokens_details
    assert details.cached_tokens == 500
    row = till.charged(raw.headers["x-request-id"], "demo-cached", input=250, cache_read=500, cache_write_5m=251, output=1)
    assert row["charge_nano_usd"] == 250 * 3_000 + 500 * 300 + 251 * 3_750 + 15_000


def test_a_price_per_call(client, till):
    raw = client.chat.completions.with_raw_response.create(**ask() | {"model": "demo-per-call"})
    assert raw.headers["x-tollgate-charge-usd"] == "0.0025"
    till.charged(raw.headers["x-request-id"], "demo-per-call", calls=1, input=3, output=12)


def test_a_tier_multiplies_the_price(client, till):
    raw = client.chat.completions.with_raw_response.create(**ask("a [[sim:tokens=1]]", service_tier="priority") | {"model": "demo-tiers"})
    row = till.charged(raw.headers["x-request-id"], "demo-tiers", multiplier=Fraction(175, 100), input=2, output=1)
    assert row["tier"] == "priority" and row["charge_nano_usd"] == 21_000


def test_a_failed_route_costs_nothing(house, client, till):
    mark = house.seen_by_provider()
    raw = client.chat.completions.with_raw_response.create(**ask() | {"model": "demo-fallback"})
    assert [one["model"] for one in house.received(mark)] == ["sim-error500", "sim-plain"]
    till.charged(raw.headers["x-request-id"], "demo-fallback", input=3, output=12)


def test_an_empty_answer_is_free(client, till):
    raw = client.chat.completions.with_raw_response.create(**ask("nothing [[sim:empty]]"))
    assert raw.headers["x-tollgate-charge-usd"] == "0"
    till.free(raw.headers["x-request-id"], ending="answered", status=200)


def test_missing_usage_is_counted_here_and_said_so(client, till):
    raw = client.chat.completions.with_raw_response.create(**ask() | {"model": "demo-no-usage"})
    row = till.charged(raw.headers["x-request-id"], "demo-no-usage", estimated=True)
    assert row["usage"]["output"] > 0 and row["usage"]["input"] > 0
    assert raw.headers["x-tollgate-charge-usd"] == row["charge_usd"]


def outgrown(house, client):
    """A provider that says more than it was allowed to."""
    _, key = house.account("outgrown", trial="0.0002")
    request = ask("hi [[sim:ignore_max_tokens tokens=50]]", max_tokens=5)
    raw = client.with_options(api_key=key).chat.completions.with_raw_response.create(**request)
    return raw, house.usage(raw.headers["x-request-id"], key), house.balance(key)


def test_what_is_said_beyond_the_limit_is_the_operators_loss(house, client):
    _, row, balance = outgrown(house, client)
    within = price_of(row["usage"] | {"output": 5}, "tollgate-demo", topped_up=False)
    assert row["charge_nano_usd"] == within <= row["hold_nano_usd"], row
    assert (balance["available_nano_usd"], balance["held_nano_usd"]) == (200_000 - within, 0)
    [usage_row] = house.cli("usage", "--account", balance["account_id"])
    assert usage_row["write_off_nano_usd"] == price_of(row["usage"], "tollgate-demo", topped_up=False) - within == 675_000


def test_the_charge_header_is_what_was_charged(house, client):
    raw, row, _ = outgrown(house, client)
    assert raw.headers["x-tollgate-charge-usd"] == row["charge_usd"]


def test_idempotency(house, client, till):
    headers = {"Idempotency-Key": f"sdk-{openai.__version__}-whole"}
    first = client.chat.completions.with_raw_response.create(**ask(), extra_headers=headers)
    row = till.charged(first.headers["x-request-id"], "tollgate-demo", input=3, output=12)
    mark = house.seen_by_provider()
    again = client.chat.completions.with_raw_response.create(**ask(), extra_headers=headers)
    assert again.parse() == first.parse()
    assert again.headers["x-request-id"] == first.headers["x-request-id"]
    assert again.headers["idempotency-replayed"] == "true" and "idempotency-replayed" not in first.headers
    with pytest.raises(openai.ConflictError) as other:
        client.chat.completions.create(**ask("another body"), extra_headers=headers)
    assert other.value.code == "idempotency_conflict"
    assert house.received(mark) == [], "neither reached the provider"
    till.fell_by(0)
    assert house.usage(row["call_id"]) == row


def test_models(client):
    models = {model.id: model for model in client.models.list()}
    assert {"tollgate-demo", "demo-tools", "demo-reasoning"} <= models.keys()
    assert all(model.object == "model" and model.created > 0 and model.owned_by for model in models.values())
    assert client.models.retrieve("tollgate-demo") == models["tollgate-demo"]
    with pytest.raises(openai.NotFoundError) as missing:
        client.models.retrieve("no-such-model")
    assert missing.value.code == "model_not_found"


def test_the_usage_list_is_the_sum_of_the_charges(house, client):
    account, key = house.account("sums", paid="1")
    mine = client.with_options(api_key=key)
    calls = [mine.chat.completions.with_raw_response.create(**ask(f"[[sim:tokens={n}]]")).headers["x-request-id"] for n in range(1, 6)]
    for call in calls:
        house.usage(call, key)
    first = house.get("/v1/usage?limit=3", key)
    second = house.get(f"/v1/usage?limit=3&before={first['next_before']}", key)
    rows = first["data"] + second["data"]
    assert [row["call_id"] for row in rows] == calls[::-1], "newest first, each once"
    assert first["has_more"] is True and second["has_more"] is False
    spent = sum(price_of({"input": 1, "output": n}, "tollgate-demo", topped_up=True) for n in range(1, 6))
    assert sum(row["charge_nano_usd"] for row in rows) == spent
    assert house.balance(key)["available_usd"] == usd(1_000_000_000 - spent)
    assert [row["call_id"] for row in house.cli("usage", "--account", account)] == calls[::-1]
    assert house.request("GET", f"/v1/usage/{calls[0]}")[0] == 404, "another account's call is not found"
