"""Pictures and voices that a model of a conversation makes: by google-genai, by chat completions, by the tool of Responses."""

import base64

import openai
import pytest

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def google(house):
    from google import genai
    from google.genai import types

    return genai.Client(api_key=house.key, http_options=types.HttpOptions(base_url=house.base_url)), types


def test_a_picture_of_gemini(house, google):
    client, types = google
    asked = types.GenerateContentConfig(response_modalities=["TEXT", "IMAGE"])
    reply = client.models.generate_content(model="gemini-demo-image", contents="a gate [[sim:tokens=3]]", config=asked)
    (picture,) = [part.inline_data for part in reply.candidates[0].content.parts if part.inline_data]
    assert picture.mime_type == "image/png" and picture.data.startswith(PNG)
    row = house.newest()
    assert (row["usage"]["image_output"], row["usage"]["output"]) == (1290, 3), row
    assert row["charge_nano_usd"] == row["usage"]["input"] * 1_000 + 3 * 4_000 + 1290 * 30_000


def test_a_picture_of_gemini_in_a_stream(house, google):
    client, types = google
    asked = types.GenerateContentConfig(response_modalities=["TEXT", "IMAGE"])
    parts = []
    for piece in client.models.generate_content_stream(model="gemini-demo-image", contents="a gate [[sim:tokens=3]]", config=asked):
        content = piece.candidates[0].content if piece.candidates else None
        parts += (content.parts or []) if content else []
    assert [part.inline_data.data[:8] for part in parts if part.inline_data] == [PNG]
    row = house.newest()
    assert row["charge_nano_usd"] == row["usage"]["input"] * 1_000 + 3 * 4_000 + 1290 * 30_000


@pytest.mark.parametrize("stream", [False, True])
def test_a_voice_of_gemini(house, google, stream):
    client, types = google
    speaker = types.VoiceConfig(prebuilt_voice_config=types.PrebuiltVoiceConfig(voice_name="Kore"))
    asked = types.GenerateContentConfig(response_modalities=["AUDIO"], speech_config=types.SpeechConfig(voice_config=speaker))
    ask = client.models.generate_content_stream if stream else client.models.generate_content
    answer = ask(model="gemini-demo-voice", contents="Say it. [[sim:tokens=3]]", config=asked)
    contents = [piece.candidates[0].content for piece in (answer if stream else [answer]) if piece.candidates]
    parts = [part for content in contents for part in ((content and content.parts) or [])]
    [voice] = [part.inline_data for part in parts if part.inline_data]
    # A second at 24 kHz.
    assert voice.mime_type == "audio/L16;codec=pcm;rate=24000" and len(voice.data) == 48_000
    assert not any(part.text for part in parts)
    row = house.newest()
    assert (row["usage"]["audio_output"], row["usage"]["output"]) == (20, 0), row
    assert row["charge_nano_usd"] == row["usage"]["input"] * 1_000 + 20 * 20_000


def test_a_voice_of_chat_completions(house, client):
    reply = client.chat.completions.create(
        model="demo-audio",
        modalities=["text", "audio"],
        audio={"voice": "alloy", "format": "wav"},
        messages=[{"role": "user", "content": "Say it. [[sim:tokens=6]]"}],
    )
    audio = reply.choices[0].message.audio
    assert base64.b64decode(audio.data).startswith(b"RIFF") and audio.transcript
    row = house.newest()
    assert (row["usage"]["audio_output"], row["usage"]["output"]) == (20, 6), row
    assert row["charge_nano_usd"] == row["usage"]["input"] * 1_000 + 6 * 4_000 + 20 * 20_000


def test_a_voice_in_a_stream(house):
    with openai.OpenAI(api_key=house.key, base_url=house.base_url + "/v1", max_retries=0, timeout=30) as client:
        stream = client.chat.completions.create(
            model="demo-audio",
            modalities=["text", "audio"],
            audio={"voice": "alloy", "format": "pcm16"},
            messages=[{"role": "user", "content": "Say it. [[sim:tokens=6]]"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        pieces = [chunk.choices[0].delta.model_dump() for chunk in stream if chunk.choices]
    data = "".join((piece.get("audio") or {}).get("data") or "" for piece in pieces)
    # A second at 24 kHz.
    assert len(base64.b64decode(data)) == 48_000
    row = house.newest()
    assert (row["usage"]["audio_output"], row["usage"]["output"]) == (20, 6), row


@pytest.mark.parametrize("stream", [False, True])
def test_a_picture_of_the_tool(house, client, stream):
    asked = dict(model="demo-drawing", input="Draw a gate. [[sim:tokens=6]]", tools=[{"type": "image_generation"}])
    if stream:
        with client.responses.create(**asked, stream=True) as events:
            kinds = [event.type for event in events]
        assert "response.image_generation_call.completed" in kinds and kinds[-1] == "response.completed"
    else:
        reply = client.responses.create(**asked)
        (drawn,) = [item for item in reply.output if item.type == "image_generation_call"]
        assert base64.b64decode(drawn.result).startswith(PNG)
    row = house.newest()
    assert row["usage"]["tools"] == {"tool:image_generation": 1}, row
    assert row["charge_nano_usd"] == row["usage"]["input"] * 1_000 + 6 * 4_000 + 40_000_000
