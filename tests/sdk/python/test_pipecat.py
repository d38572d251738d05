"""Pipecat's realtime service in a pipeline, at the models of three kinds of providers, over TLS. Runs in an environment of its own."""

import asyncio

import pytest

pytest.importorskip("pipecat", reason="in the environment `voice` only")

from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema
from pipecat.frames.frames import (
    EndFrame,
    ErrorFrame,
    FunctionCallResultFrame,
    InputAudioRawFrame,
    LLMContextFrame,
    LLMFullResponseEndFrame,
    LLMTextFrame,
    ProposedUserStartedSpeakingFrame,
    TTSAudioRawFrame,
    TTSTextFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.runner import PipelineRunner
from pipecat.pipeline.task import PipelineParams, PipelineTask
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
from pipecat.services.openai.realtime import events
from pipecat.services.openai.realtime.llm import OpenAIRealtimeLLMService

from talk import Rows, pcm

MODELS = ["demo-realtime", "gemini-demo-live", "demo-omni"]


class Ear(FrameProcessor):
    """Notes what comes out of the service. In place of the aggregators, which load models for the ends of turns, it asks for an answer when a
    function has returned."""

    def __init__(self, context=None):
        super().__init__()
        self.context = context
        self.frames = asyncio.Queue()
        self.seen = []

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        self.seen.append(frame)
        self.frames.put_nowait(frame)
        await self.push_frame(frame, direction)
        if isinstance(frame, FunctionCallResultFrame) and direction == FrameDirection.DOWNSTREAM:
            await self.push_frame(LLMContextFrame(self.context), FrameDirection.UPSTREAM)

    async def until(self, kind):
        while True:
            frame = await self.frames.get()
            assert not isinstance(frame, ErrorFrame), frame
            if isinstance(frame, kind):
                return frame

    def of(self, kind):
        return [frame for frame in self.seen if isinstance(frame, kind)]


def service(house, model, key=None, **properties):
    settings = OpenAIRealtimeLLMService.Settings(model=model, session_properties=events.SessionProperties(**properties))
    return OpenAIRealtimeLLMService(api_key=key or house.key, base_url=house.base_url.replace("https", "wss") + "/v1/realtime", settings=settings)


def held(llm, work, context=None):
    """What `work` makes of a pipeline with this service, and what was heard."""

    async def run():
        ear = Ear(context)
        task = PipelineTask(Pipeline([llm, ear]), params=PipelineParams(), idle_timeout_secs=None)
        failed = []
        task.add_event_handler("on_pipeline_error", lambda _, frame: failed.append(frame))

        async def drive():
            try:
                # What is heard before the session is ready is dropped by the service.
                while not llm._api_session_ready:
                    await asyncio.sleep(0.02)
                return await asyncio.wait_for(work(task, ear), 60)
            finally:
                await task.queue_frame(EndFrame())

        _, out = await asyncio.gather(PipelineRunner(handle_sigint=False).run(task), drive())
        assert failed == [], failed
        return out, ear

    return asyncio.run(run())


def asking(words, **more):
    return LLMContext([{"role": "user", "content": words}], **more)


def sound(milliseconds, level):
    return InputAudioRawFrame(audio=pcm(milliseconds, level), sample_rate=24_000, num_channels=1)


@pytest.mark.parametrize("model", MODELS)
def test_text(tls_house, model):
    rows, context = Rows(tls_house, model), asking("hello [[sim:tokens=4]]")

    async def work(task, ear):
        await task.queue_frame(LLMContextFrame(context))
        await ear.until(LLMFullResponseEndFrame)

    _, ear = held(service(tls_house, model, output_modalities=["text"], instructions="be brief"), work, context)
    assert "".join(frame.text for frame in ear.of(LLMTextFrame)) == "the toll is paid"
    assert [row["usage"]["output"] for row in rows.charged()] == [4]


@pytest.mark.parametrize("model", MODELS)
def test_audio_in_and_out(tls_house, model):
    rows = Rows(tls_house, model)

    async def work(task, ear):
        for frame in (sound(400, 6_000), sound(800, 0)):
            await task.queue_frame(frame)
        await ear.until(LLMFullResponseEndFrame)

    _, ear = held(service(tls_house, model), work)
    assert sum(len(frame.audio) for frame in ear.of(TTSAudioRawFrame)) == 800 * 48
    assert "".join(frame.text for frame in ear.of(TTSTextFrame)) == "the toll is paid and the gate opens"
    # Gemini says nothing about the beginning of speech that interrupts nobody.
    assert ear.of(ProposedUserStartedSpeakingFrame) or model == "gemini-demo-live"
    assert rows.charged()[0]["usage"]["audio_output"] == 16


@pytest.mark.parametrize("model", MODELS[:2])
def test_a_function_is_called_and_answered(tls_house, model):
    asked = []
    schema = FunctionSchema(name="weather", description="d", properties={"city": {"type": "string"}}, required=["city"])
    context = asking("weather? [[sim:tool]]", tools=ToolsSchema(standard_tools=[schema]))
    llm = service(tls_house, model, output_modalities=["text"])

    async def weather(call):
        asked.append(call.arguments)
        await call.result_callback({"sky": "sunny"})

    llm.register_function("weather", weather)

    async def work(task, ear):
        await task.queue_frame(LLMContextFrame(context))
        await ear.until(LLMTextFrame)

    held(llm, work, context)
    assert asked == [{"city": "Oslo"}]


@pytest.mark.parametrize("model", MODELS)
def test_the_user_interrupts(tls_house, model):
    rows = Rows(tls_house, model)

    async def work(task, ear):
        for frame in (sound(400, 6_000), sound(800, 0)):
            await task.queue_frame(frame)
        for _ in range(3):
            await ear.until(TTSAudioRawFrame)
        await task.queue_frame(sound(400, 6_000))
        await ear.until(ProposedUserStartedSpeakingFrame)

    held(service(tls_house, model, instructions="[[sim:hold after=3]]"), work)
    assert rows.charged()[0]["usage"]["audio_output"] == 6


@pytest.mark.parametrize("wrong, says", [({"key": "sk-wrong"}, "401"), ({"listener": "no-such"}, "no-such")])
def test_an_error_is_reported(tls_house, wrong, says):
    """At the handshake, and by an event: both end up with whoever runs the pipeline."""
    heard = events.AudioInput(transcription=events.InputAudioTranscription(model=wrong.get("listener", "demo-transcribe")))
    llm = service(tls_house, "demo-realtime", wrong.get("key"), audio=events.AudioConfiguration(input=heard))

    async def run():
        task = PipelineTask(Pipeline([llm, Ear()]), idle_timeout_secs=None)
        failed = []

        @task.event_handler("on_pipeline_error")
        async def on_error(_, frame):
            failed.append(frame.error)
            await task.cancel()

        await asyncio.wait_for(PipelineRunner(handle_sigint=False).run(task), 60)
        return failed

    assert says in asyncio.run(run())[0]
