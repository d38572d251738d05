"""What the translations write for a client is what its own SDK accepts, strictly.

Takes the replies and streams of `crates/dialects/tests/golden` that were translated from another dialect and reads them with the official
SDKs: their types with strict validation, and their streaming helpers, which insist on the order of events. No gateway runs here.
"""

import json
import pathlib
import re

import anthropic
import openai
import pytest
from google.genai import types

try:
    import httpx2 as httpx
except ImportError:
    import httpx

GOLDEN = pathlib.Path(__file__).parents[3] / "crates/dialects/tests/golden"
DIALECTS = ("chat", "anthropic", "responses", "gemini")


def cases(folder):
    """Dialect and what a case becomes in it. What stays in its dialect passes, and errors are the gateway's to write."""
    return [case for case in every_case(folder) if folder == "events" or re.search(r"^\{$", case.values[1], flags=re.M)]


def every_case(folder):
    for path in sorted((GOLDEN / folder).glob("*.txt")):
        text = path.read_text()
        origin = text.splitlines()[0].removeprefix("from: ")
        parts = re.split(rf"^=== ({'|'.join(DIALECTS)})\n", text.split("=== result\n", 1)[1], flags=re.M)
        for dialect, result in zip(parts[1::2], parts[2::2]):
            if dialect != origin and "with: array" not in text.split("=== original")[0]:
                yield pytest.param(dialect, result, id=f"{path.stem}-{dialect}")


def http(body, kind):
    answer = lambda _: httpx.Response(200, headers={"content-type": kind}, content=body)
    return httpx.Client(transport=httpx.MockTransport(answer))


def clients(body, kind="text/event-stream"):
    options = dict(api_key="k", max_retries=0, _strict_response_validation=True)
    return (
        openai.OpenAI(base_url="http://x.example/v1", http_client=http(body, kind), **options),
        anthropic.Anthropic(base_url="http://x.example", http_client=http(body, kind), **options),
    )


@pytest.mark.parametrize("dialect,result", cases("replies"))
def test_a_reply_fits_its_types(dialect, result):
    start = re.search(r"^\{$", result, flags=re.M)
    body = result[start.start() :].strip().encode()
    chat, claude = clients(body, "application/json")
    match dialect:
        case "chat":
            assert chat.chat.completions.create(model="m", messages=[]).choices
        case "anthropic":
            assert claude.messages.create(model="m", max_tokens=1, messages=[]).stop_reason
        case "responses":
            assert chat.responses.create(model="m", input="x").status
        case "gemini":
            assert types.GenerateContentResponse.model_validate(json.loads(body)).model_version == "public"


@pytest.mark.parametrize("dialect,result", cases("events"))
def test_a_stream_is_read_to_its_end_or_its_error(dialect, result):
    end = re.search(r"^--- end: (.*?);", result, flags=re.M)
    whole = end.group(1) == "complete"
    READERS[dialect](result[: end.start()].encode(), whole)


def read_chat(body, whole):
    raised = False
    try:
        for _ in clients(body)[0].chat.completions.create(model="m", messages=[], stream=True):
            pass
    except openai.APIError:
        raised = True
    assert raised is not whole
    if not whole:
        return
    with clients(body)[0].chat.completions.stream(model="m", messages=[]) as stream:
        for _ in stream:
            pass
        try:
            assert stream.get_final_completion().choices
        except (openai.LengthFinishReasonError, openai.ContentFilterFinishReasonError):
            pass


def read_anthropic(body, whole):
    raised = False
    try:
        with clients(body)[1].messages.stream(model="m", max_tokens=1, messages=[]) as stream:
            for _ in stream:
                pass
            assert stream.get_final_message().stop_reason
    except anthropic.APIError:
        raised = True
    assert raised is not whole


def read_responses(body, whole):
    events = list(clients(body)[0].responses.create(model="m", input="x", stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    last = events[-1].type
    assert last in ("response.completed", "response.incomplete", "response.failed")
    assert (last != "response.failed") is whole
    if last == "response.completed":
        with clients(body)[0].responses.stream(model="m", input="x") as stream:
            for _ in stream:
                pass
            assert stream.get_final_response().status == "completed"


def read_gemini(body, whole):
    errors = 0
    for line in body.decode().split("\n"):
        if not line:
            continue
        # Google's own client stops at any other line.
        assert line.startswith("data: "), line
        chunk = json.loads(line.removeprefix("data: "))
        if "error" in chunk:
            assert isinstance(chunk["error"]["code"], int)
            errors += 1
        else:
            types.GenerateContentResponse.model_validate(chunk)
    assert (errors == 0) is whole


READERS = {"chat": read_chat, "anthropic": read_anthropic, "responses": read_responses, "gemini": read_gemini}
