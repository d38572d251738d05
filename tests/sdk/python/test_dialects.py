"""Every official SDK against a provider of every dialect: what an application does, and what it costs.

The models differ only in what their provider speaks, so each test has one expectation for all sixteen pairs.
"""

import base64
import json

import anthropic
import pytest
from google.genai import types

from dialects import CLIENTS, MODELS, PARAMETERS, PICTURE, Messages

WORDS = "the gate opens for every coin"


@pytest.fixture(params=CLIENTS, ids=lambda client: client.__name__)
def sdk(house, request):
    return request.param(house)


@pytest.fixture(params=MODELS)
def model(request):
    return request.param


def test_plain(sdk, model):
    said = sdk.ask(model, [sdk.user("Say it. [[sim:tokens=6]]")])
    assert (said.text, said.usage) == (WORDS, (3, 6))


def test_stream(sdk, model):
    said = sdk.stream(model, "Say it. [[sim:tokens=6]]")
    assert said.text == WORDS
    assert said.usage[1] == 6


def test_parallel_tools_and_the_turn_with_their_results(sdk, model):
    turns = [sdk.user("Weather? [[sim:tools calls=2]]")]
    said = sdk.ask(model, turns, tools=True)
    assert [(name, arguments) for _, name, arguments in said.calls] == [("weather", {"city": "Paris"})] * 2
    end = sdk.ask(model, [*turns, *said.turn, *sdk.results(said)], tools=True)
    assert end.text and not end.calls


def test_streamed_tools_and_the_turn_with_their_results(sdk, model):
    question = "Weather? [[sim:tools calls=2]]"
    said = sdk.stream(model, question, tools=True)
    assert [(name, arguments) for _, name, arguments in said.calls] == [("weather", {"city": "Paris"})] * 2
    end = sdk.ask(model, [sdk.user(question), *said.turn, *sdk.results(said)], tools=True)
    assert end.text and not end.calls


def seals(model, body):
    """What a request gives back to its provider of what that provider sealed. Chat completions seal nothing."""
    if model == "gemini-demo-anthropic":
        blocks = [block for turn in body["messages"] if isinstance(turn["content"], list) for block in turn["content"]]
        return [block["signature"] for block in blocks if block["type"] == "thinking"]
    if model == "gemini-demo-responses":
        return [item["encrypted_content"] for item in body["input"] if item.get("type") == "reasoning"]
    if model == "gemini-demo-gemini":
        parts = [part for turn in body["contents"] for part in turn["parts"]]
        made = base64.b64encode(b"gemini").decode()
        return [part["thoughtSignature"] for part in parts if part.get("thoughtSignature", "").startswith(made)]
    return []


def thoughts_came_back(house, mark, model):
    """Both turns were taken at the first attempt, and the second gave the provider its seal back: it refuses one that is not its own or
    belongs to something else."""
    first, second = house.received(mark)
    assert (first["status"], second["status"]) == (200, 200)
    assert seals(model, first["body"]) == []
    assert bool(seals(model, second["body"])) == (model != "gemini-demo-openai"), second["body"]


def test_thoughts_survive_the_second_turn(house, sdk, model):
    mark = house.seen_by_provider()
    turns = [sdk.user("Think. [[sim:reasoning_tools calls=2]]")]
    said = sdk.ask(model, turns, tools=True, thinking=True)
    assert said.thought and len(said.calls) == 2
    end = sdk.ask(model, [*turns, *said.turn, *sdk.results(said)], tools=True, thinking=True)
    assert end.text and not end.calls
    thoughts_came_back(house, mark, model)


def test_streamed_thoughts_survive_the_second_turn(house, sdk, model):
    """What the SDK's own helper put together from the pieces is what goes back."""
    mark = house.seen_by_provider()
    question = "Think. [[sim:reasoning_tools calls=2]]"
    said = sdk.stream(model, question, tools=True, thinking=True)
    assert said.thought and len(said.calls) == 2
    end = sdk.ask(model, [sdk.user(question), *said.turn, *sdk.results(said)], tools=True, thinking=True)
    assert end.text and not end.calls
    thoughts_came_back(house, mark, model)


def test_a_picture_reaches_the_provider(house, sdk, model):
    mark = house.seen_by_provider()
    said = sdk.ask(model, [sdk.user("What is it? [[sim:tokens=6]]", PICTURE)])
    assert said.text == WORDS
    [seen] = house.received(mark)
    assert "iVBORw0KGgo" in json.dumps(seen["body"])


def test_an_answer_in_a_schema(sdk, model):
    said = sdk.ask(model, [sdk.user("As JSON.")], schema=True)
    assert json.loads(said.text) == {"n": 7}


@pytest.mark.parametrize("scenario, status", [("error400", 400), ("error429", 429), ("error500", 502)])
def test_errors_have_the_shape_and_class_of_the_sdk(sdk, model, scenario, status):
    with pytest.raises(sdk.errors) as raised:
        sdk.ask(model, [sdk.user(f"[[sim:{scenario}]]")])
    assert getattr(raised.value, "status_code", None) == status or getattr(raised.value, "code", None) == status


def test_anthropics_sdk_knows_the_call(house):
    """It looks for `request-id`, which the others call `x-request-id`."""
    sdk = Messages(house)
    options = {"model": MODELS[0], "max_tokens": 100}
    reply = sdk.client.messages.create(messages=[sdk.user("Say it. [[sim:tokens=2]]")], **options)
    assert house.usage(reply._request_id)["status"] == 200
    with pytest.raises(anthropic.APIStatusError) as raised:
        sdk.client.messages.create(messages=[sdk.user("[[sim:error500]]")], **options)
    assert house.usage(raised.value.request_id)["status"] == 502


def test_a_broken_stream_raises(sdk, model):
    with pytest.raises(Exception) as raised:
        sdk.stream(model, "[[sim:cut_midstream after=2 cut=eof]]")
    assert isinstance(raised.value, sdk.stream_error), raised.value


@pytest.mark.parametrize("verb", ["generateContent", "streamGenerateContent?alt=sse"])
@pytest.mark.parametrize("scenario", ["tokens=6", "reasoning_tools calls=2", "cached prompt=100"])
def test_what_gemini_says_fits_its_types_strictly(house, model, verb, scenario):
    """google-genai has no strict switch; its types refuse unknown fields when they are asked."""
    tool = {"functionDeclarations": [{"name": "weather", "parametersJsonSchema": PARAMETERS}]}
    turn = {"role": "user", "parts": [{"text": f"Say it. [[sim:{scenario}]]"}]}
    config = {"thinkingConfig": {"includeThoughts": True}}
    body = json.dumps({"contents": [turn], "tools": [tool], "generationConfig": config}).encode()
    status, _, answer = house.request("POST", f"/v1beta/models/{model}:{verb}", body)
    assert status == 200, answer
    if "stream" in verb:
        fragments = [line.removeprefix("data: ") for line in answer.decode().split("\n") if line]
    else:
        fragments = [answer]
    read = [types.GenerateContentResponse.model_validate(json.loads(fragment)) for fragment in fragments]
    assert read[-1].candidates[0].finish_reason == types.FinishReason.STOP


def test_leaving_ends_the_call(house, sdk, model):
    house.left(model, lambda: sdk.leave(model, "[[sim:tokens=200 delay_ms=50]]"))
