"""LiveKit's agents with its OpenAI plugin, at the models of three kinds of providers, over TLS. Runs in an environment of its own."""

import asyncio
import contextlib
import json

import pytest

pytest.importorskip("livekit.plugins.openai", reason="in the environment `voice` only")

import aiohttp
from livekit import rtc
from livekit.agents import Agent, AgentSession, APIConnectionError, function_tool, llm
from livekit.agents.types import APIConnectOptions
from livekit.plugins.openai.realtime import RealtimeModel

from talk import Rows, pcm

MODELS = ["demo-realtime", "gemini-demo-live", "demo-omni"]


def held(house, name, work, **options):
    """What `work` makes of a session, and the events that the plugin saw."""

    async def run():
        seen = []
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=house.trust)) as http:
            options.setdefault("input_audio_transcription", None)
            model = RealtimeModel(model=name, base_url=house.base_url + "/v1", api_key=house.key, http_session=http, **options)
            session = model.session()
            session.on("openai_server_event_received", seen.append)
            try:
                return await asyncio.wait_for(work(session), 60), seen
            finally:
                await session.aclose()
                await model.aclose()

    return asyncio.run(run())


def errors(seen):
    return [event["error"] for event in seen if event["type"] == "error"]


async def ask(session, words):
    context = session.chat_ctx.copy()
    context.add_message(role="user", content=words)
    await session.update_chat_ctx(context)
    return await session.generate_reply()


async def spoken(generation):
    """Text, seconds of sound, and calls of a generation."""
    text, sound = "", 0.0
    async for message in generation.message_stream:
        async for piece in message.text_stream:
            text += piece
        async for frame in message.audio_stream:
            sound += frame.duration
    return text, sound, [call async for call in generation.function_stream]


def frames(milliseconds, level):
    piece = pcm(milliseconds, level)
    return rtc.AudioFrame(piece, sample_rate=24_000, num_channels=1, samples_per_channel=len(piece) // 2)


def next_generation(session):
    begun = asyncio.get_running_loop().create_future()
    session.once("generation_created", begun.set_result)
    return begun


@pytest.mark.parametrize("model", MODELS)
def test_text(tls_house, model):
    rows = Rows(tls_house, model)

    async def work(session):
        await session.update_instructions("be brief")
        return await spoken(await ask(session, "hello [[sim:tokens=4]]"))

    (text, sound, calls), seen = held(tls_house, model, work, modalities=["text"])
    assert (text, sound, calls, errors(seen)) == ("the toll is paid", 0, [], [])
    assert [row["usage"]["output"] for row in rows.charged()] == [4]


@pytest.mark.parametrize("model", MODELS)
def test_audio_in_and_out(tls_house, model):
    rows = Rows(tls_house, model)

    async def work(session):
        begun = next_generation(session)
        session.push_audio(frames(400, 6_000))
        session.push_audio(frames(800, 0))
        return await spoken(await begun)

    (text, sound, _), seen = held(tls_house, model, work)
    assert text == "the toll is paid and the gate opens" and round(sound, 3) == 0.8, (text, sound)
    assert errors(seen) == [] and rows.charged()[0]["usage"]["audio_output"] == 16


@pytest.mark.parametrize("model", MODELS[:2])
def test_a_function_is_called_and_answered(tls_house, model):
    @function_tool
    async def weather(city: str) -> str:
        """The weather of a city."""
        return "sunny"

    async def work(session):
        await session.update_tools([weather])
        _, _, [call] = await spoken(await ask(session, "weather? [[sim:tool]]"))
        context = session.chat_ctx.copy()
        context.items.append(llm.FunctionCallOutput(call_id=call.call_id, name=call.name, output="sunny", is_error=False))
        await session.update_chat_ctx(context)
        return call, await spoken(await session.generate_reply())

    (call, (text, _, _)), seen = held(tls_house, model, work, modalities=["text"])
    assert (call.name, json.loads(call.arguments)) == ("weather", {"city": "Oslo"})
    assert text and errors(seen) == []


@pytest.mark.parametrize("model", MODELS)
def test_the_user_interrupts(tls_house, model):
    rows = Rows(tls_house, model)

    async def work(session):
        await session.update_instructions("[[sim:hold after=3]]")
        begun, speech = next_generation(session), asyncio.Event()
        session.push_audio(frames(400, 6_000))
        session.push_audio(frames(800, 0))
        generation = await begun
        session.on("input_speech_started", lambda _: speech.set())
        async for message in generation.message_stream:
            heard = 0
            async for _ in message.audio_stream:
                heard += 1
                if heard == 3:
                    session.push_audio(frames(400, 6_000))
        await speech.wait()

    _, seen = held(tls_house, model, work)
    assert [event["response"]["status"] for event in seen if event["type"] == "response.done"] == ["cancelled"]
    assert rows.charged()[0]["usage"]["audio_output"] == 6


def test_going_on_after_an_error(tls_house):
    """A refused event is an error, and the session goes on. A session that the provider breaks off is opened again by the plugin, with its context."""

    async def work(session):
        session.send_event({"type": "session.update", "session": {"type": "realtime", "model": "dearer"}})
        first = await spoken(await ask(session, "still there? [[sim:tokens=1]]"))
        again = asyncio.Event()
        session.on("session_reconnected", lambda _: again.set())
        with pytest.raises(llm.RealtimeError):
            await spoken(await ask(session, "[[sim:close_first]]"))
        await again.wait()
        return first, await spoken(await ask(session, "and now? [[sim:tokens=2]]"))

    (first, second), seen = held(tls_house, "demo-realtime", work, modalities=["text"])
    assert (first[0], second[0]) == ("the", "the toll"), seen
    assert errors(seen)[0]["param"] == "session.model"


def test_no_money_is_said_and_ends_the_session(tls_house):
    account, key = tls_house.account("poor", trial="0.000001")
    model = RealtimeModel(model="demo-realtime", base_url=tls_house.base_url + "/v1", api_key=key, conn_options=APIConnectOptions(max_retry=0))

    async def run():
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls_house.trust)) as http:
            model._http_session = http
            session, failed = model.session(), asyncio.get_running_loop().create_future()
            session.on("error", lambda event: failed.done() or failed.set_result(event))
            event = await asyncio.wait_for(failed, 60)
            with contextlib.suppress(APIConnectionError):
                await session.aclose()
            return event

    event = asyncio.run(run())
    assert not event.recoverable and "402" in str(event.error.__cause__), event


def test_an_agent_with_a_tool(tls_house):
    """The whole framework: an agent whose tool is called and whose answer follows."""
    asked = []

    class Keeper(Agent):
        def __init__(self):
            super().__init__(instructions="be brief")

        @function_tool
        async def weather(self, city: str) -> str:
            """The weather of a city."""
            asked.append(city)
            return "sunny"

    async def run():
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls_house.trust)) as http:
            options = dict(modalities=["text"], input_audio_transcription=None, http_session=http)
            model = RealtimeModel(model="demo-realtime", base_url=tls_house.base_url + "/v1", api_key=tls_house.key, **options)
            async with AgentSession(llm=model) as session:
                await session.start(Keeper())
                result = await asyncio.wait_for(session.run(user_input="weather? [[sim:tool]]"), 60)
                return [event.type for event in result.events]

    assert asyncio.run(run())[:3] == ["function_call", "function_call_output", "message"]
    assert asked == ["Oslo"]
