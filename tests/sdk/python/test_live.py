"""Gemini Live as google-genai speaks it (`aio.live`), over TLS: text, audio, functions, interruption, transcripts, and
ephemeral tokens (`auth_tokens`). Once at a provider that is Gemini too, and once at a provider of OpenAI's interface."""

import asyncio
import datetime
import os
import warnings

import pytest

from talk import Rows, pcm

pytestmark = pytest.mark.skipif(os.environ.get("TOLLGATE_SDKS") != "newest", reason="one version of the SDK is enough")

from google import genai
from google.genai import errors, types

LIVE = "gemini-demo-live"
# A Gemini client may talk to any realtime model of the house.
MODELS = [LIVE, "demo-realtime"]
WEATHER = types.Tool(function_declarations=[types.FunctionDeclaration(name="weather", description="d", parameters=types.Schema(type="OBJECT", properties={"city": types.Schema(type="STRING")}))])

warnings.filterwarnings("ignore", message="The SDK's")


def client(house, key=None, version=None):
    """The SDK's own version of the interface, unless one is named."""
    return genai.Client(api_key=key or house.key, http_options=types.HttpOptions(base_url=house.base_url, api_version=version))


def session(house, model, work, *, key=None, version=None, **config):
    """What `work` makes of a session."""

    async def run():
        async with client(house, key, version).aio.live.connect(model=model, config=types.LiveConnectConfig(**config)) as live:
            return await asyncio.wait_for(work(live), 60)

    return asyncio.run(run())


async def say(live, text):
    await live.send_client_content(turns=types.Content(role="user", parts=[types.Part(text=text)]), turn_complete=True)


async def turn(live):
    """The messages of a turn, each held to the SDK's types."""
    messages = []
    async for message in live.receive():
        types.LiveServerMessage.model_validate(message.model_dump())
        messages.append(message)
    return messages


def words(messages):
    return "".join(message.text or "" for message in messages)


def content(messages, field):
    return [getattr(message.server_content, field) for message in messages if message.server_content and getattr(message.server_content, field)]


def usage(messages):
    return [message.usage_metadata for message in messages if message.usage_metadata][-1]


@pytest.mark.parametrize("model", MODELS)
def test_text_and_its_charge(tls_house, model):
    rows = Rows(tls_house, model)

    async def work(live):
        await say(live, "hello [[sim:tokens=4]]")
        first = await turn(live)
        await say(live, "and again [[sim:tokens=2]]")
        return first, await turn(live)

    first, second = session(tls_house, model, work, response_modalities=["TEXT"], system_instruction="be brief")
    assert (words(first), words(second)) == ("the toll is paid", "the toll")
    assert content(first, "turn_complete") == [True]
    assert usage(first).response_token_count == 4
    assert [row["usage"]["output"] for row in rows.charged(2)] == [4, 2]


@pytest.mark.parametrize("model", MODELS)
def test_audio_in_and_out_with_what_was_said(tls_house, model):
    rows = Rows(tls_house, model)

    async def work(live):
        for piece in (pcm(400, 6_000, 16_000), pcm(800, 0, 16_000)):
            await live.send_realtime_input(audio=types.Blob(data=piece, mime_type="audio/pcm;rate=16000"))
        return await turn(live)

    transcripts = {"output_audio_transcription": {}}
    if model == LIVE:
        transcripts["input_audio_transcription"] = {}
    messages = session(tls_house, model, work, response_modalities=["AUDIO"], **transcripts)
    audio = b"".join(message.data or b"" for message in messages)
    assert len(audio) == 800 * 48, "800 ms at 24 kHz"
    assert "".join(said.text for said in content(messages, "output_transcription")) == "the toll is paid and the gate opens"
    if model == LIVE:
        assert "".join(said.text for said in content(messages, "input_transcription"))
    [row] = rows.charged()
    assert row["usage"]["audio_output"] == 16 and row["usage"]["audio_input"] > 0 and not row["estimated"], row


@pytest.mark.parametrize("model", MODELS)
def test_a_function_is_called_and_answered(tls_house, model):
    async def work(live):
        await say(live, "weather? [[sim:tool]]")
        async for message in live.receive():
            if message.tool_call:
                [call] = message.tool_call.function_calls
                break
        answer = types.FunctionResponse(id=call.id, name=call.name, response={"output": "sunny"})
        await live.send_tool_response(function_responses=answer)
        return call, await turn(live)

    call, messages = session(tls_house, model, work, response_modalities=["TEXT"], tools=[WEATHER])
    assert (call.name, call.args) == ("weather", {"city": "Oslo"})
    assert words(messages) and content(messages, "turn_complete")


@pytest.mark.parametrize("model", MODELS)
def test_the_user_interrupts(tls_house, model):
    rows = Rows(tls_house, model)

    async def work(live):
        for piece in (pcm(400, 6_000, 16_000), pcm(800, 0, 16_000)):
            await live.send_realtime_input(audio=types.Blob(data=piece, mime_type="audio/pcm;rate=16000"))
        heard, interrupted = 0, False
        async for message in live.receive():
            if message.data:
                heard += 1
                if heard == 3:
                    await live.send_realtime_input(audio=types.Blob(data=pcm(400, 6_000, 16_000), mime_type="audio/pcm;rate=16000"))
            interrupted |= bool(message.server_content and message.server_content.interrupted)
        return interrupted

    assert session(tls_house, model, work, response_modalities=["AUDIO"], system_instruction="[[sim:hold after=3]]")
    [row] = rows.charged()
    assert row["usage"]["audio_output"] == 6 and not row["estimated"], row


def test_handles_for_resuming_are_not_the_clients(tls_house):
    """They would open a session at the provider that nobody has held money for."""

    async def work(live):
        await say(live, "hi [[sim:tokens=1]]")
        return await turn(live)

    messages = session(tls_house, LIVE, work, response_modalities=["TEXT"], session_resumption=types.SessionResumptionConfig())
    assert words(messages) == "the" and not [message for message in messages if message.session_resumption_update]
    with pytest.raises(errors.APIError, match="sessions cannot be resumed here"):
        resumed = types.SessionResumptionConfig(handle="mine")
        session(tls_house, LIVE, work, response_modalities=["TEXT"], session_resumption=resumed)


def test_the_end_of_a_session_is_announced(tls_house):
    async def work(live):
        await say(live, "hi [[sim:tokens=1]]")
        messages = await turn(live)
        return [message.go_away for message in messages if message.go_away]

    [away] = session(tls_house, LIVE, work, response_modalities=["TEXT"], system_instruction="[[sim:going_ms=5000]]")
    assert away.time_left


def test_what_is_refused_closes_with_a_reason_and_the_next_session_works(tls_house):
    async def work(live):
        await say(live, "hi [[sim:tokens=1]]")
        return await turn(live)

    with pytest.raises(errors.APIError, match="only functionDeclarations"):
        session(tls_house, LIVE, work, response_modalities=["TEXT"], tools=[types.Tool(google_search=types.GoogleSearch())])
    with pytest.raises(errors.APIError, match="no-such"):
        session(tls_house, "no-such", work, response_modalities=["TEXT"])
    with pytest.raises(Exception, match="401"):
        session(tls_house, LIVE, work, key="sk-wrong", response_modalities=["TEXT"])
    assert words(session(tls_house, LIVE, work, response_modalities=["TEXT"])) == "the"


# Ephemeral tokens


def token(house, **config):
    google = client(house, version="v1alpha")
    made = google.auth_tokens.create(config=types.CreateAuthTokenConfig(**config))
    assert made.name.startswith("auth_tokens/ek_") and made.expire_time and made.new_session_expire_time
    return made


async def one_word(live):
    await say(live, "hi [[sim:tokens=1]]")
    return await turn(live)


def with_token(house, made, model=LIVE, **config):
    return session(house, model, one_word, key=made.name, version="v1alpha", **config)


def test_a_token_opens_one_session_as_it_was_made(tls_house):
    locked = types.LiveConnectConstraints(model=LIVE, config=types.LiveConnectConfig(response_modalities=["TEXT"], system_instruction="be brief"))
    made = token(tls_house, live_connect_constraints=locked)
    rows = Rows(tls_house, LIVE)
    # What the client asks for instead is ignored.
    assert words(with_token(tls_house, made, response_modalities=["AUDIO"])) == "the"
    assert len(rows.charged()) == 1
    with pytest.raises(Exception, match="401"):
        with_token(tls_house, made)


def test_a_token_may_leave_fields_to_the_client(tls_house):
    text = types.LiveConnectConfig(response_modalities=["TEXT"])
    for fields in ([], ["temperature"]):
        made = token(tls_house, uses=3, live_connect_constraints=types.LiveConnectConstraints(model=LIVE, config=text), lock_additional_fields=fields)
        said = with_token(tls_house, made, response_modalities=["AUDIO"], system_instruction="[[sim:tokens=2]]", temperature=0.2)
        assert words(said)
        with pytest.raises(errors.APIError, match="made for the model"):
            with_token(tls_house, made, model="demo-realtime")
        assert words(with_token(tls_house, made))


def test_a_token_has_an_end_and_is_no_key(tls_house):
    soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=600)
    made = token(tls_house, uses=0, new_session_expire_time=soon, expire_time=soon)
    assert words(with_token(tls_house, made, response_modalities=["TEXT"])) == words(with_token(tls_house, made, response_modalities=["TEXT"]))
    status, _, body = tls_house.request("GET", "/v1/balance", key=made.name)
    assert status == 401 and b"realtime sessions only" in body
    past = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=5)
    with pytest.raises(errors.ClientError, match="expireTime"):
        token(tls_house, expire_time=past)
