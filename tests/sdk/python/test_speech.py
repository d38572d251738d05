"""Speech as the official SDK asks for it: whole, streamed to a file, as events, with a voice that is an object."""

import base64
import json
import subprocess

import openai
import pytest

CHARACTER = 15_000  # demo-speech, nano-USD
FORMATS = {"mp3": "audio/mpeg", "opus": "audio/ogg", "aac": "audio/aac", "flac": "audio/flac", "wav": "audio/wav", "pcm": "audio/pcm"}
SPOKEN = "[[sim:ms=2500]] The gate opens."


def milliseconds(path, form):
    """How long ffprobe says that a file plays."""
    raw = ["-f", "s16le", "-ar", "24000", "-ch_layout", "mono"] if form == "pcm" else []
    command = ["ffprobe", "-v", "error", *raw, "-show_entries", "format=duration", "-of", "csv=p=0", str(path)]
    return round(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) * 1000)


@pytest.mark.parametrize("form", FORMATS)
def test_a_streamed_reply_writes_a_file_that_plays(house, client, till, tmp_path, form):
    path = tmp_path / f"speech.{form}"
    asked = dict(model="demo-speech", voice="alloy", input=SPOKEN, response_format=form)
    with client.audio.speech.with_streaming_response.create(**asked) as reply:
        assert reply.headers["content-type"] == FORMATS[form]
        call = reply.headers["x-request-id"]
        reply.stream_to_file(path)
    assert abs(milliseconds(path, form) - 2500) <= 50
    row = house.usage(call)
    assert (row["ending"], row["usage"]["input"], row["usage"]["audio_output"]) == ("answered", len(SPOKEN), 50), row
    assert row["charge_nano_usd"] == len(SPOKEN) * CHARACTER
    till.fell_by(row["charge_nano_usd"])


def test_a_whole_reply_is_the_bytes(house, client):
    reply = client.audio.speech.create(model="demo-speech", voice="nova", input="Hi.", speed=1.5)
    # What breaks off on its way is free, so the charge is told by the log only.
    assert reply.content[:2] == b"\xff\xf3" and "x-tollgate-charge-usd" not in reply.response.headers
    pieces = b"".join(client.audio.speech.create(model="demo-speech", voice="nova", input="Hi.").iter_bytes(100))
    assert pieces == reply.content


def test_a_voice_is_an_object_and_instructions_are_taken(house, client):
    mark = house.seen_by_provider()
    client.audio.speech.create(model="demo-speech", voice={"id": "echo"}, input="Hi.", extra_body={"instructions": "softly"})
    [seen] = house.received(mark)
    assert (seen["body"]["voice"], seen["body"]["instructions"]) == ({"id": "echo"}, "softly")


def test_events_are_the_same_audio(house, client, tmp_path):
    asked = dict(model="demo-speech", voice="alloy", input=SPOKEN, response_format="wav", extra_body={"stream_format": "sse"})
    with client.audio.speech.with_streaming_response.create(**asked) as reply:
        assert reply.headers["content-type"] == "text/event-stream"
        events = [json.loads(line[6:]) for line in reply.iter_lines() if line.startswith("data: ")]
    audio = b"".join(base64.b64decode(event["audio"]) for event in events[:-1])
    path = tmp_path / "speech.wav"
    path.write_bytes(audio)
    assert abs(milliseconds(path, "wav") - 2500) <= 50
    usage = {"input_tokens": len(SPOKEN), "output_tokens": 50, "total_tokens": len(SPOKEN) + 50}
    assert events[-1] == {"type": "speech.audio.done", "usage": usage}


@pytest.mark.parametrize("model, voice", [("speech-2.8-turbo", "v"), ("eleven_multilingual_v2", "v"), ("gemini-2.5-flash-tts", "Kore"), ("qwen3-tts-flash", "Cherry"), ("cosyvoice-v3-flash", "longanyang")])
def test_other_makers_answer_alike(client, tmp_path, model, voice):
    path = tmp_path / "speech.wav"
    with client.audio.speech.with_streaming_response.create(model=model, voice=voice, input=SPOKEN, response_format="wav") as reply:
        reply.stream_to_file(path)
    assert abs(milliseconds(path, "wav") - 2500) <= 50


def test_what_is_refused_is_reported_and_free(house, client, till):
    with pytest.raises(openai.BadRequestError) as refused:
        client.audio.speech.create(model="step-tts-mini", voice="wenrounvsheng", input="x" * 1001)
    assert (refused.value.code, refused.value.param) == ("invalid_parameter", "input")
    with pytest.raises(openai.BadRequestError) as refused:
        client.audio.speech.create(model="demo-speech", voice="alloy", input="[[sim:moderated]]")
    assert refused.value.code == "content_policy_violation"
    till.fell_by(0)


def test_what_may_have_been_made_is_not_asked_for_again(house, till):
    mark = house.seen_by_provider()
    with openai.OpenAI(api_key=house.key, base_url=house.base_url + "/v1", timeout=30) as retrying:
        assert retrying.max_retries > 0
        with pytest.raises(openai.InternalServerError):
            retrying.audio.speech.create(model="demo-speech", voice="alloy", input="[[sim:error500]]")
    assert len(house.received(mark)) == 1
    till.fell_by(0)


def test_a_cut_reply_is_not_taken_for_a_whole_one(client, till, tmp_path):
    with pytest.raises(Exception) as broken:
        with client.audio.speech.with_streaming_response.create(model="demo-speech", voice="alloy", input="[[sim:cut ms=4000]]") as reply:
            reply.stream_to_file(tmp_path / "speech.mp3")
    # Nearly always in the middle of the body; where the connection breaks before its head has left, as any that breaks.
    assert type(broken.value).__name__ in ("RemoteProtocolError", "ReadError", "APIConnectionError"), repr(broken.value)
    till.fell_by(0)
