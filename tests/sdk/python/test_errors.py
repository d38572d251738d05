"""Every refusal becomes the exception an application expects, is retried only where that helps, and costs nothing."""

import time

import openai
import pytest

from house import Till

ASK = {"model": "tollgate-demo", "messages": [{"role": "user", "content": "Hello"}]}


def marked(text):
    return {**ASK, "messages": [{"role": "user", "content": text}]}


@pytest.mark.parametrize("stream", [False, True])
def test_wrong_key(house, client, till, stream):
    mark = house.seen_by_provider()
    with pytest.raises(openai.AuthenticationError) as raised:
        client.with_options(api_key="sk-" + "x" * 48).chat.completions.create(**ASK, stream=stream)
    error = raised.value
    assert (error.status_code, error.code, error.type) == (401, "invalid_api_key", "authentication_error")
    assert error.request_id.startswith("call_")
    assert house.received(mark) == []
    till.fell_by(0)


def test_a_revoked_key_stops_working(house, client):
    account, _ = house.account("revoked", paid="1")
    key = house.new_key(account)
    mine = client.with_options(api_key=key["secret"])
    mine.chat.completions.create(**ASK)
    house.cli("key", "revoke", key["key_id"])
    deadline = time.monotonic() + 60
    while True:
        try:
            mine.chat.completions.create(**ASK)
        except openai.AuthenticationError:
            break
        assert time.monotonic() < deadline, "still working a minute after it was revoked"
        time.sleep(0.1)


@pytest.mark.parametrize("stream", [False, True])
def test_no_money_is_402_and_is_not_retried(house, client, stream):
    _, key = house.account("poor", trial="0.000001")
    till = Till(house, key)
    mark = house.seen_by_provider()
    patient = client.with_options(api_key=key, max_retries=5)
    with pytest.raises(openai.APIStatusError) as raised:
        patient.chat.completions.create(**ASK, stream=stream)
    error = raised.value
    assert (error.status_code, error.code, error.type) == (402, "insufficient_balance", "insufficient_quota")
    assert error.response.headers["x-should-retry"] == "false"
    assert house.received(mark) == [], "nothing was sent upstream"
    till.fell_by(0)
    rows = house.get("/v1/usage", key)["data"]
    assert [(row["call_id"], row["ending"], row["status"], row["charge_nano_usd"]) for row in rows] == [
        (error.request_id, "refused", 402, 0)
    ], "one attempt, one row"


def test_less_output_fits_a_small_balance(house, client):
    _, key = house.account("careful", trial="0.001")
    mine = client.with_options(api_key=key)
    with pytest.raises(openai.APIStatusError) as raised:
        mine.chat.completions.create(**ASK)
    assert raised.value.status_code == 402
    till = Till(house, key)
    raw = mine.chat.completions.with_raw_response.create(**ASK, max_tokens=20)
    till.charged(raw.headers["x-request-id"], "tollgate-demo", input=1, output=12)


def test_a_spend_cap(house, client):
    account, _ = house.account("capped", paid="10")
    key = house.new_key(account, "--cap", "0.000001")["secret"]
    with pytest.raises(openai.APIStatusError) as raised:
        client.with_options(api_key=key).chat.completions.create(**ASK)
    assert (raised.value.status_code, raised.value.code) == (402, "key_spend_cap_reached")


def test_a_key_for_other_models(house, client):
    account, _ = house.account("choosy", paid="10")
    mine = client.with_options(api_key=house.new_key(account, "--model", "demo-tools")["secret"])
    with pytest.raises(openai.PermissionDeniedError) as raised:
        mine.chat.completions.create(**ASK)
    assert (raised.value.code, raised.value.param) == ("model_not_allowed", "model")
    assert [model.id for model in mine.models.list()] == ["demo-tools"]


def test_a_model_for_paying_accounts(house, client):
    _, key = house.account("never paid", trial="5")
    with pytest.raises(openai.PermissionDeniedError) as raised:
        client.with_options(api_key=key).chat.completions.create(**ASK | {"model": "demo-topup-only"})
    assert raised.value.code == "model_requires_topup"


@pytest.mark.parametrize("stream", [False, True])
def test_unknown_model(house, client, till, stream):
    with pytest.raises(openai.NotFoundError) as raised:
        client.chat.completions.create(**ASK | {"model": "no-such-model"}, stream=stream)
    assert (raised.value.code, raised.value.param) == ("model_not_found", "model")
    assert "no-such-model" in raised.value.message
    till.fell_by(0)


@pytest.mark.parametrize(
    ("change", "param", "code"),
    [
        ({"max_tokens": "many"}, "max_tokens", "invalid_parameter"),
        ({"max_completion_tokens": -1}, "max_completion_tokens", "invalid_parameter"),
        ({"n": 0}, "n", "invalid_parameter"),
        ({"messages": None}, "messages", None),
        ({"stream": "yes"}, "stream", "invalid_parameter"),
        ({"model": 7}, "model", "invalid_parameter"),
    ],
)
def test_bad_requests_name_the_field(house, client, till, change, param, code):
    mark = house.seen_by_provider()
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(**ASK, extra_body=change)
    assert raised.value.status_code == 400
    assert raised.value.param == param
    assert raised.value.type == "invalid_request_error"
    assert code is None or raised.value.code == code
    assert house.received(mark) == []
    till.fell_by(0)


def test_the_providers_400_is_the_callers(client, till):
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(**marked("[[sim:error400]]"))
    assert "'model_options' does not support 7" in raised.value.message
    till.free(raised.value.request_id, ending="upstream_fault", status=400)


def test_the_providers_400_names_its_field(client):
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(**marked("[[sim:error400]]"))
    assert raised.value.param == "model_options"


@pytest.mark.parametrize("stream", [False, True])
def test_rate_limit(client, till, stream):
    with pytest.raises(openai.RateLimitError) as raised:
        client.chat.completions.create(**marked("[[sim:error429 retry_after=3]]"), stream=stream)
    error = raised.value
    assert (error.status_code, error.code, error.type) == (429, "rate_limit_exceeded", "rate_limit_error")
    assert error.response.headers["retry-after"] == "3"
    assert "org-sim" not in error.message, "the operator's own account is not shown"
    till.free(error.request_id, ending="upstream_fault", status=429)


def test_the_sdk_obeys_retry_after(house, client):
    mark = house.seen_by_provider()
    began = time.monotonic()
    with pytest.raises(openai.RateLimitError):
        client.with_options(max_retries=1).chat.completions.create(**marked("[[sim:error429 retry_after=1]]"))
    assert time.monotonic() - began >= 0.9
    assert len(house.received(mark)) == 2


@pytest.mark.parametrize("scenario", ["error401", "error402", "error403", "error500", "error503", "html500", "redirect", "garbage"])
def test_the_providers_own_trouble_is_ours(client, till, scenario):
    with pytest.raises(openai.InternalServerError) as raised:
        client.chat.completions.create(**marked(f"[[sim:{scenario}]]"))
    error = raised.value
    assert error.status_code in (502, 503) and error.type == "server_error", error
    for secret in ("sim-worker", ".internal", "sk-sim", "org-sim", "proj_sim", "req_0123", "Traceback", "127.0.0.1"):
        assert secret not in str(error), error
    till.free(error.request_id, ending="upstream_fault", status=error.status_code)


@pytest.mark.parametrize("path", ["/v1/models", "/v1/balance", "/v1/usage", "/v1/models/none", "/v1/usage/call_none", "/nowhere"])
def test_every_reply_has_a_request_id(house, path):
    _, headers, _ = house.request("GET", path)
    assert headers.get("x-request-id")
