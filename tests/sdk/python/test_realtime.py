"""Realtime sessions as the official SDK holds them: openai's `realtime.connect`.

Every event is held to the SDK's own types, strictly: `connect` reads what does not fit without a word, so each event is
validated once more, and no union member may have been taken for another.
"""

import asyncio
import base64
import json
import os

import openai
import pydantic
import pytest

from talk import Rows, pcm, text

NEWEST = os.environ.get("TOLLGATE_SDKS") == "newest"
current = pytest.mark.skipif(not NEWEST, reason="older SDKs know the beta interface only")

if NEWEST:
    from openai.types.realtime import RealtimeServerEvent

    SERVER_EVENT = pydantic.TypeAdapter(RealtimeServerEvent)


def checked(event):
    """The event again, from its own JSON: of the right class, and with nothing of the wrong type in it."""
    again = SERVER_EVENT.validate_python(json.loads(event.to_json()))
    assert type(again) is type(event) and again.type == event.type, (type(again), event)
    assert event.event_id, event
    return event


def until(connection, kind):
    """Events up to the first of a type."""
    events = []
    while not events or events[-1].type != kind:
        event = checked(connection.recv())
        assert event.type != "error" or kind == "error", event
        events.append(event)
    return events


def words(connection, said, **response):
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": said}]}
    connection.conversation.item.create(item=item)
    connection.response.create(**({"response": response} if response else {}))
    return until(connection, "response.done")


def joined(events, kind):
    return "".join(event.delta for event in events if event.type == kind)


MODELS = ["demo-realtime", "gemini-demo-live", "demo-omni"]


@current
@pytest.mark.parametrize("model", MODELS)
def test_text_and_its_charge(house, client, model):
    rows = Rows(house, model)
    with client.realtime.connect(model=model) as connection:
        created = until(connection, "session.created")[0]
        assert created.session.model == model
        connection.session.update(session={"type": "realtime", "output_modalities": ["text"], "instructions": "be brief"})
        assert until(connection, "session.updated")[-1].session.output_modalities == ["text"]
        events = words(connection, "hello there [[sim:tokens=4]]")
    assert joined(events, "response.output_text.delta") == "the toll is paid"
    response = events[-1].response
    assert response.status == "completed" and response.output[0].content[0].text == "the toll is paid"
    assert response.usage.output_tokens == 4 and response.usage.input_tokens > 4
    [row] = rows.charged()
    assert (row["usage"]["output"], row["estimated"]) == (4, False), row


@current
@pytest.mark.parametrize("model", MODELS)
def test_audio_in_and_out(house, client, model):
    rows = Rows(house, model)
    with client.realtime.connect(model=model) as connection:
        until(connection, "session.created")
        connection.session.update(session={"type": "realtime", "output_modalities": ["audio"]})
        until(connection, "session.updated")
        for piece in (pcm(400, 6_000), pcm(800, 0)):
            connection.input_audio_buffer.append(audio=text(piece))
        events = until(connection, "response.done")
    audio = b"".join(base64.b64decode(event.delta) for event in events if event.type == "response.output_audio.delta")
    assert len(audio) == 800 * 48, "800 ms at 24 kHz"
    assert joined(events, "response.output_audio_transcript.delta") == "the toll is paid and the gate opens"
    assert "input_audio_buffer.committed" in [event.type for event in events]
    [row] = rows.charged()
    assert row["usage"]["audio_output"] == 16 and row["usage"]["audio_input"] > 0 and not row["estimated"], row


@current
@pytest.mark.parametrize("model", MODELS[:2])
def test_a_function_is_called_and_answered(house, client, model):
    tool = {"type": "function", "name": "weather", "description": "d", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}
    with client.realtime.connect(model=model) as connection:
        until(connection, "session.created")
        connection.session.update(session={"type": "realtime", "output_modalities": ["text"], "tools": [tool]})
        until(connection, "session.updated")
        events = words(connection, "weather? [[sim:tool]]")
        [call] = [item for item in events[-1].response.output if item.type == "function_call"]
        assert (call.name, json.loads(call.arguments)) == ("weather", {"city": "Oslo"})
        connection.conversation.item.create(item={"type": "function_call_output", "call_id": call.call_id, "output": "sunny"})
        connection.response.create()
        events = until(connection, "response.done")
        assert events[-1].response.status == "completed" and joined(events, "response.output_text.delta")


@current
@pytest.mark.parametrize("model", MODELS)
def test_the_user_interrupts(house, client, model):
    rows = Rows(house, model)
    with client.realtime.connect(model=model) as connection:
        until(connection, "session.created")
        connection.session.update(session={"type": "realtime", "instructions": "[[sim:hold after=3]]"})
        until(connection, "session.updated")
        for piece in (pcm(400, 6_000), pcm(800, 0)):
            connection.input_audio_buffer.append(audio=text(piece))
        for _ in range(3):
            until(connection, "response.output_audio.delta")
        connection.input_audio_buffer.append(audio=text(pcm(400, 6_000)))
        events = until(connection, "response.done")
        assert "input_audio_buffer.speech_started" in [event.type for event in events]
        response = events[-1].response
        assert (response.status, response.status_details.reason) == ("cancelled", "turn_detected")
    [row] = rows.charged()
    assert row["usage"]["audio_output"] == 6 and not row["estimated"], row


@current
def test_cancelling_and_going_on_after_an_error(house, client):
    with client.realtime.connect(model="demo-realtime") as connection:
        until(connection, "session.created")
        connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
        until(connection, "session.updated")
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "[[sim:hold after=2]]"}]}
        connection.conversation.item.create(item=item)
        connection.response.create()
        for _ in range(2):
            until(connection, "response.output_text.delta")
        connection.response.cancel()
        done = until(connection, "response.done")[-1]
        assert (done.response.status, done.response.usage.output_tokens) == ("cancelled", 2)
        connection.send({"type": "session.update", "session": {"type": "realtime", "model": "dearer"}})
        refused = until(connection, "error")[-1]
        assert refused.error.param == "session.model", refused
        assert words(connection, "still there? [[sim:tokens=1]]")[-1].response.status == "completed"


@current
def test_a_key_that_is_none_is_refused_before_the_upgrade(house):
    wrong = openai.OpenAI(api_key="sk-wrong", base_url=house.base_url + "/v1", max_retries=0)
    with pytest.raises(Exception) as refused, wrong.realtime.connect(model="demo-realtime") as connection:
        connection.recv()
    assert "401" in str(refused.value), refused.value


@current
def test_async(house):
    async def talk():
        client = openai.AsyncOpenAI(api_key=house.key, base_url=house.base_url + "/v1", max_retries=0)
        async with client.realtime.connect(model="demo-realtime") as connection:
            await connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
            item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi [[sim:tokens=2]]"}]}
            await connection.conversation.item.create(item=item)
            await connection.response.create()
            said = ""
            async for event in connection:
                checked(event)
                if event.type == "response.output_text.delta":
                    said += event.delta
                elif event.type == "response.done":
                    return said

    assert asyncio.run(talk()) == "the toll"


def test_the_beta_interface(house, client):
    from openai.types.beta.realtime import RealtimeServerEvent as BetaEvent

    known = pydantic.TypeAdapter(BetaEvent)
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi [[sim:ms=200]]"}]}
    # Without an address of its own it dials TLS, whatever the base is.
    address = house.base_url.replace("http", "ws", 1) + "/v1"
    plain = openai.OpenAI(api_key=house.key, base_url=client.base_url, websocket_base_url=address)
    with plain.beta.realtime.connect(model="demo-realtime") as connection:
        connection.session.update(session={"modalities": ["audio", "text"], "voice": "verse", "temperature": 0.7})
        connection.conversation.item.create(item=item)
        connection.response.create()
        events = [connection.recv()]
        while events[-1].type != "response.done":
            events.append(connection.recv())
    for event in events:
        said = json.loads(event.to_json())
        if "session" in said:
            # Its types know the models of that time only.
            said["session"]["model"] = "gpt-4o-realtime-preview"
        assert known.validate_python(said).type == event.type, event
    names = [event.type for event in events]
    assert names[:2] == ["session.created", "session.updated"] and "conversation.item.created" in names, names
    audio = b"".join(base64.b64decode(event.delta) for event in events if event.type == "response.audio.delta")
    assert len(audio) == 200 * 48
    assert events[-1].response.output[0].content[0].transcript == "the toll"
    assert events[1].session.voice == "verse"
