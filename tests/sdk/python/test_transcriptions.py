"""Recordings written down as the official SDK asks for it: every format, lists and nested fields, streams, translations."""

import io
import struct

import openai
import pytest


SECOND = 100_000  # demo-whisper, nano-USD: 50/3 tokens at 6 USD per million
STREAMED = 75_000  # demo-transcribe, at 4.5 USD

NEW = pytest.mark.skipif(openai.__version__.startswith("1."), reason="this SDK has another type for it")


def wav(seconds):
    """Silence: 16 bits, one channel, 8 kHz."""
    data = bytes(int(seconds * 8_000) * 2)
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1, 1, 8_000, 16_000, 2, 16, b"data", len(data))
    return head + data


@pytest.fixture
def raw(house):
    with openai.OpenAI(api_key=house.key, base_url=house.base_url + "/v1", max_retries=0, timeout=30) as client:
        yield client


def charge(house, reply):
    return house.usage(reply.headers["x-request-id"])["charge_nano_usd"]


def test_a_transcript(client):
    transcript = client.audio.transcriptions.create(model="demo-whisper", file=wav(1.5))
    assert transcript.text == f"sim heard {len(wav(1.5))} bytes"


@pytest.mark.parametrize("response_format", ["json", "text", "srt", "vtt", "verbose_json"])
def test_every_format_costs_the_same(house, raw, response_format):
    file = ("speech.wav", io.BytesIO(wav(2.001)), "audio/wav")
    reply = raw.audio.transcriptions.with_raw_response.create(model="demo-whisper", file=file, response_format=response_format)
    assert charge(house, reply) == 3 * SECOND
    transcript = reply.parse()
    text = transcript if isinstance(transcript, str) else transcript.text
    assert f"sim heard {len(wav(2.001))} bytes" in text
    if response_format == "verbose_json":
        assert transcript.segments[0].text == transcript.text and transcript.duration == 3.0


def test_lists_and_a_prompt(raw):
    transcript = raw.audio.transcriptions.create(
        model="demo-whisper",
        file=wav(1),
        response_format="verbose_json",
        timestamp_granularities=["word", "segment"],
        language="en",
        prompt="A gate opens.",
        temperature=0.2,
    )
    assert transcript.words[0].word == "sim"


def test_a_long_recording_is_written_down_by_a_task(house, raw):
    mark = house.seen_by_provider()
    reply = raw.audio.transcriptions.with_raw_response.create(model="demo-recognition-files", file=wav(400), response_format="srt")
    assert f"sim heard {len(wav(400))} bytes" in reply.parse()
    # 50/3 tokens a second, at 3 USD per million.
    assert charge(house, reply) == 400 * 50_000
    begun = [one for one in house.received(mark) if one["path"].endswith("/asr/transcription")]
    assert len(begun) == 1


@NEW
def test_a_stream(house, client):
    stream = client.audio.transcriptions.create(
        model="demo-transcribe", file=wav(4.2), stream=True, include=["logprobs"], chunking_strategy={"type": "server_vad"}
    )
    with stream:
        events = list(stream)
        call = stream.response.headers["x-request-id"]
    assert [event.type for event in events][-1] == "transcript.text.done"
    assert "".join(event.delta for event in events[:-1]) == events[-1].text
    assert house.usage(call)["charge_nano_usd"] == 5 * STREAMED


def test_a_translation(house, raw):
    reply = raw.audio.translations.with_raw_response.create(model="demo-whisper", file=wav(0.2))
    assert reply.parse().text.startswith("sim heard")
    assert charge(house, reply) == SECOND


def test_a_file_that_does_not_fit_is_refused_by_its_name(raw):
    with pytest.raises(openai.BadRequestError) as refused:
        raw.audio.transcriptions.create(model="demo-recognition-streaming", file=("a.wav", b"ID3\x04" + bytes(2_000)))
    assert refused.value.param == "file"
    with pytest.raises(openai.BadRequestError) as refused:
        raw.audio.transcriptions.create(model="demo-recognition-streaming", file=wav(301))
    assert refused.value.param == "file"


def test_a_failure_is_not_repeated_by_the_sdk(house):
    mark = house.seen_by_provider()
    with openai.OpenAI(api_key=house.key, base_url=house.base_url + "/v1", max_retries=2, timeout=30) as client:
        with pytest.raises(openai.APIStatusError) as failed:
            client.audio.transcriptions.create(model="demo-whisper", file=wav(1), prompt="[[sim:garbage]]")
    assert failed.value.status_code == 502
    assert len(house.received(mark)) == 1
