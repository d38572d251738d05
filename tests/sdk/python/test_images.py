"""Pictures as the official SDK makes and changes them: with and without a format, several, masks, streams, and by chat."""

import base64
import io
import struct
import urllib.request
import zlib

import openai
import pytest

EACH = 40_000_000  # demo-image, nano-USD a picture


def picture(tag=0):
    """A grey PNG of one pixel."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"\0" + bytes([tag]))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def opens(letters):
    """Whether base64 is a PNG whose sums are right."""
    data = base64.b64decode(letters, validate=True)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at = 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        body = data[at + 4 : at + 8 + length]
        (crc,) = struct.unpack(">I", data[at + 8 + length : at + 12 + length])
        assert crc == zlib.crc32(body)
        at += 12 + length
    return True


def charged(house, raw):
    return house.usage(raw.headers["x-request-id"])["charge_nano_usd"]


@pytest.mark.parametrize("format", [None, "b64_json"])
def test_a_picture(house, client, format):
    more = {"response_format": format} if format else {}
    raw = client.images.with_raw_response.generate(model="demo-image", prompt="a gate", size="1024x1024", **more)
    result = raw.parse()
    assert len(result.data) == 1 and opens(result.data[0].b64_json) and result.data[0].url == ""
    assert result.created > 1_700_000_000
    assert charged(house, raw) == EACH


def test_several_pictures(house, client):
    raw = client.images.with_raw_response.generate(model="demo-image", prompt="gates", n=3, quality="high")
    result = raw.parse()
    assert len({one.b64_json for one in result.data}) == 3
    assert charged(house, raw) == 3 * 120_000_000


def test_a_picture_by_link(house, client):
    result = client.images.generate(model="demo-image-url", prompt="a gate")
    assert result.data[0].url.startswith("http") and result.data[0].b64_json == ""


def test_a_picture_by_a_link_of_ours(house, client):
    """Its maker hands over base64 only; the link opens without a key."""
    raw = client.images.with_raw_response.generate(model="demo-image", prompt="a gate", response_format="url")
    [one] = raw.parse().data
    assert one.b64_json == "" and one.url.startswith(house.base_url)
    with urllib.request.urlopen(one.url, timeout=30) as reply:
        assert reply.headers["content-type"] == "image/png"
        assert opens(base64.b64encode(reply.read()))
    assert charged(house, raw) == EACH


@pytest.mark.parametrize("count", [1, 2, 16])
def test_edits(house, client, count):
    images = [io.BytesIO(picture(tag)) for tag in range(count)]
    for at, image in enumerate(images):
        image.name = f"{at}.png"
    raw = client.images.with_raw_response.edit(
        model="demo-image", prompt="brighter", image=images[0] if count == 1 else images, mask=("mask.png", picture(), "image/png")
    )
    assert opens(raw.parse().data[0].b64_json)
    assert charged(house, raw) == EACH


def test_an_edit_of_bytes_without_a_name(client):
    assert opens(client.images.edit(model="demo-image", prompt="brighter", image=picture()).data[0].b64_json)


def test_an_edit_as_json(house, client):
    link = "data:image/png;base64," + base64.b64encode(picture()).decode()
    result = client.post("/images/edits", body={"model": "demo-image", "prompt": "brighter", "image": link}, cast_to=object)
    assert opens(result["data"][0]["b64_json"])
    assert result["metadata"] == {"success_count": "1", "failed_count": "0"}


def test_a_stream_with_previews(house, client):
    try:
        stream = client.images.generate(model="demo-image", prompt="a gate", stream=True, partial_images=2, size="1024x1024")
    except TypeError:
        pytest.skip("this SDK is older than streamed pictures")
    events = list(stream)
    kinds = [event.type.removeprefix("image_generation.") for event in events]
    assert kinds == ["partial_image", "partial_image", "completed"]
    assert all(opens(event.b64_json) for event in events)


def test_a_content_refusal(client):
    with pytest.raises(openai.BadRequestError) as refused:
        client.images.generate(model="demo-image", prompt="[[sim:moderation]]")
    assert refused.value.code == "content_policy_violation"


def test_nothing_is_made_twice(house):
    """The SDK repeats what fails on its own, unless it is asked not to."""
    with openai.OpenAI(api_key=house.key, base_url=house.base_url + "/v1", max_retries=2, timeout=30) as patient:
        with pytest.raises(openai.InternalServerError):
            patient.images.generate(model="demo-image", prompt="[[sim:lost]] only once")
    rows = [row for row in house.cli("usage", "--limit", "20") if row["endpoint"] == "/v1/images/generations"]
    assert sum(row["status"] == 502 for row in rows) == 1


def test_pictures_of_gemini(house, client):
    """Its maker answers with generateContent, one picture a request."""
    mark = house.seen_by_provider()
    raw = client.images.with_raw_response.generate(model="gemini-2.5-flash-image", prompt="gates", n=2, size="16:9")
    assert all(opens(one.b64_json) for one in raw.parse().data) and charged(house, raw) == 2 * 39_000_000
    seen = house.received(mark)
    assert len(seen) == 2 and all(one["body"]["generationConfig"]["imageConfig"]["aspectRatio"] == "16:9" for one in seen)
    raw = client.images.with_raw_response.edit(model="gemini-2.5-flash-image", prompt="brighter", image=("a.png", picture(), "image/png"))
    assert opens(raw.parse().data[0].b64_json) and charged(house, raw) == 39_000_000


def test_pictures_in_the_form_of_imagen(house):
    """`generate_images` of google-genai, which newer versions have for Vertex alone."""
    from google import genai
    from google.genai import errors, models, types

    if not hasattr(models, "_GenerateImagesConfig_to_mldev"):
        pytest.skip("this version asks Vertex only")
    client = genai.Client(api_key=house.key, http_options=types.HttpOptions(base_url=house.base_url))
    for model, each in (("demo-image", EACH), ("gemini-2.5-flash-image", 39_000_000)):
        asked = types.GenerateImagesConfig(number_of_images=2, output_mime_type="image/png")
        reply = client.models.generate_images(model=model, prompt="a toll gate", config=asked)
        pictures = [one.image for one in reply.generated_images]
        assert [one.mime_type for one in pictures] == ["image/png"] * 2
        assert all(one.image_bytes.startswith(b"\x89PNG") for one in pictures)
        row = house.newest()
        assert row["endpoint"].endswith(":predict") and row["charge_nano_usd"] == 2 * each, row
    with pytest.raises(errors.ClientError) as refused:
        client.models.generate_images(model="demo-image", prompt="a toll gate", config=types.GenerateImagesConfig(number_of_images=99))
    assert refused.value.code == 400 and "sampleCount" in refused.value.message
