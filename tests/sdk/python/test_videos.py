"""Videos as the official SDK makes them: create_and_poll, download, list, delete, with a file and without, and webhooks."""

import http.server
import io
import json
import re
import struct
import threading
import time
import zlib

import openai
import pytest

from house import ROOT

pytestmark = [
    pytest.mark.skipif(not hasattr(openai.OpenAI, "videos"), reason="this SDK is older than videos"),
    # OpenAI ends its own models; the interface goes on.
    pytest.mark.filterwarnings("ignore:The Sora API"),
]

SECOND = 100_000_000  # sora-2, nano-USD a second


def picture(width, height):
    """A grey PNG."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\x80" * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.fixture
def loose(house):
    """For models whose sizes are not OpenAI's: its types name four."""
    with openai.OpenAI(api_key=house.key, base_url=house.base_url + "/v1", max_retries=0, timeout=30) as client:
        yield client


def charge(house, video):
    return house.usage(video.id.replace("task_", "call_"))["charge_nano_usd"]


def test_a_video_from_a_text(house, client):
    video = client.videos.create_and_poll(
        model="sora-2", prompt="A gate opens.", seconds="8", size="1280x720", poll_interval_ms=200
    )
    assert (video.status, video.progress, video.seconds, video.size) == ("completed", 100, "8", "1280x720"), video
    assert video.error is None and video.completed_at >= video.created_at
    assert "Expires=" in video.metadata["url"]
    assert charge(house, video) == 8 * SECOND
    content = client.videos.download_content(video.id).read()
    assert content[4:8] == b"ftyp"
    part = client.videos.download_content(video.id, extra_headers={"Range": "bytes=4-7"}).read()
    assert part == b"ftyp"


def test_a_video_from_a_picture(house, client):
    reference = io.BytesIO(picture(720, 1280))
    reference.name = "first.png"
    video = client.videos.create_and_poll(
        model="sora-2", prompt="It moves.", input_reference=reference, size="720x1280", poll_interval_ms=200
    )
    assert (video.status, video.seconds) == ("completed", "4"), video
    assert charge(house, video) == 4 * SECOND
    assert client.videos.download_content(video.id).read()[4:8] == b"ftyp"


def test_a_failed_video_costs_nothing(house, client):
    video = client.videos.create_and_poll(
        model="sora-2", prompt="[[sim:fail code=moderation_blocked text=No.]]", poll_interval_ms=200
    )
    assert (video.status, video.error.code) == ("failed", "moderation_blocked"), video
    assert charge(house, video) == 0


def test_other_makers_with_their_fields(house, loose):
    video = loose.videos.create_and_poll(
        model="seedance-2.5",
        prompt="A gate opens.",
        extra_body={"metadata": {"resolution": "480p", "ratio": "16:9", "generate_audio": False}},
        poll_interval_ms=200,
    )
    assert video.status == "completed", video
    assert (video.effective["resolution"], video.effective["audio"]) == ("480p", "false")
    assert charge(house, video) == 48_600 * 9_730
    video = loose.videos.create_and_poll(
        model="wan2.7-t2v", prompt="A gate opens.", size="1920*1080", extra_body={"duration": 3}, poll_interval_ms=200
    )
    assert (video.status, charge(house, video)) == ("completed", 3 * 139_000_000)


CLIP = "https://media.example/clip.mp4"
PICTURE = "https://media.example/640x640.png"

# Every family, with what is said of its size; the strict client takes the four that the SDK's types name.
FAMILIES = [
    ("wan2.7-t2v", {}, "1280*720", "5"),
    ("wan2.7-i2v", {"input_reference": PICTURE}, "1080P", "5"),
    ("wan2.7-videoedit", {"video_url": CLIP}, "1080P", "7"),
    ("seedance-2.5", {"metadata": {"ratio": "16:9"}}, "1280x720", "5"),
    ("seedance-2.5", {"metadata": {"ratio": "9:16"}}, "720x1280", "5"),
    ("seedance-2.5", {"metadata": {"resolution": "480p"}}, "480p", "5"),
    ("kling-v3", {"size": "1280x720"}, "1280x720", "5"),
    ("kling-v3", {}, "720p", "5"),
    ("kling-3.0-turbo", {}, "1280x720", "5"),
    ("kling-v3-omni", {"metadata": {"aspect_ratio": "1:1"}}, "1080p", "5"),
    ("MiniMax-H3", {"metadata": {"ratio": "16:9"}}, "768P", "5"),
    ("MiniMax-Hailuo-2.3", {}, "768P", "6"),
    ("happyhorse-1.1-t2v", {"size": "832*480"}, "832*480", "5"),
    ("sora-2", {}, "720x1280", "4"),
    ("veo-3.1", {}, "1280x720", "8"),
]
NAMED = {"720x1280", "1280x720", "1024x1792", "1792x1024"}


@pytest.mark.parametrize("model, fields, size, seconds", FAMILIES)
def test_every_family_fits_the_types(house, client, loose, model, fields, size, seconds):
    """All that the SDK's type requires is there, from the first answer on, and of the right kind."""
    strict = client if size in NAMED else loose
    made = strict.videos.create(model=model, prompt="A gate opens.", extra_body=fields)
    video = strict.videos.poll(made.id, poll_interval_ms=200)
    assert (video.status, video.size, video.seconds) == ("completed", size, seconds), video
    for shown in (made, video, next(iter(strict.videos.list(limit=1)))):
        missing = [name for name, field in type(shown).model_fields.items() if field.is_required() and name not in shown.model_fields_set]
        assert missing == [], shown
        assert isinstance(shown.size, str) and isinstance(shown.seconds, str) and shown.size and shown.seconds, shown


def test_list_and_delete(house):
    """In an account of its own, so that others' videos are not in the way."""
    _, key = house.account("videos", paid="10")
    with openai.OpenAI(api_key=key, base_url=house.base_url + "/v1", max_retries=0, timeout=30) as client:
        made = [client.videos.create_and_poll(model="sora-2", prompt=f"Gate {n}.", poll_interval_ms=200) for n in range(3)]
        ids = [video.id for video in made]
        assert [video.id for video in client.videos.list(limit=2)] == ids[::-1], "newest first, over two pages"
        assert [video.id for video in client.videos.list(limit=1, order="asc")] == ids
        assert client.videos.list(limit=2).has_more is True
        gone = client.videos.delete(ids[1])
        assert (gone.id, gone.deleted) == (ids[1], True)
        assert [video.id for video in client.videos.list()] == [ids[2], ids[0]]
        for lost in (ids[1], "task_none"):
            with pytest.raises(openai.NotFoundError) as caught:
                client.videos.retrieve(lost)
            assert caught.value.code == "task_not_found"
    with openai.OpenAI(api_key=house.key, base_url=house.base_url + "/v1", max_retries=0) as stranger:
        with pytest.raises(openai.NotFoundError):
            stranger.videos.retrieve(ids[0])
        with pytest.raises(openai.NotFoundError):
            stranger.videos.download_content(ids[0])


def test_what_may_have_begun_is_not_sent_again(house, client):
    """With the SDK's own retries: a maker's failure in mid-creation is reported to the caller, who decides. The second would succeed, and cost."""
    source = client.videos.create_and_poll(model="sora-2", prompt="A source.", poll_interval_ms=200)
    with openai.OpenAI(api_key=house.key, base_url=house.base_url + "/v1", timeout=30) as retrying:
        assert retrying.max_retries > 0
        for make in (
            lambda prompt: retrying.videos.create(model="sora-2", prompt=prompt),
            lambda prompt: retrying.videos.remix(source.id, prompt=prompt),
        ):
            mark, before = house.seen_by_provider(), house.sim("/_sim/videos")["tasks"]
            with pytest.raises(openai.InternalServerError) as caught:
                make(f"[[sim:broken_once]] {time.time()}")
            assert (caught.value.status_code, caught.value.code) == (502, "upstream_error")
            assert [one["method"] for one in house.received(mark)].count("POST") == 1
            assert house.sim("/_sim/videos")["tasks"] == before


def test_an_idempotency_key_makes_one_video(house, client):
    options = dict(model="sora-2", prompt="Once.", extra_headers={"Idempotency-Key": f"video-{time.time()}"})
    first, second = client.videos.create(**options), client.videos.create(**options)
    assert first.id == second.id
    assert client.videos.poll(first.id, poll_interval_ms=200).status == "completed"


@pytest.fixture
def receiver():
    """Takes webhooks; refuses the first one, as a receiver that is being restarted does."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(503 if len(seen) == 1 else 204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook", seen
    server.shutdown()
    server.server_close()


def test_a_webhook_is_verified_by_the_page_and_by_the_sdk(house, client, receiver):
    url, seen = receiver
    video = client.videos.create(model="sora-2", prompt="Tell me.", extra_body={"webhook_url": url})
    assert client.videos.poll(video.id, poll_interval_ms=200).status == "completed"
    end = time.monotonic() + 60
    while len(seen) < 2 and time.monotonic() < end:
        time.sleep(0.1)
    assert len(seen) == 2, "sent again after a refusal"
    (first, body), (again, same) = seen
    assert first["webhook-id"] == again["webhook-id"], "the same event"
    secret = house.get("/v1/webhooks/secret")["secret"]
    (snippet,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/video.md").read_text(encoding="utf-8"), re.DOTALL)
    page = {}
    exec(snippet, page)
    assert page["verified"](secret, again, same)
    assert not page["verified"](secret, again, same + b" ")
    assert not page["verified"]("whsec_" + "A" * 43 + "=", again, same)
    client.webhooks.verify_signature(same, again, secret=secret)
    with pytest.raises(openai.InvalidWebhookSignatureError):
        client.webhooks.verify_signature(same.replace(b"completed", b"comp1eted"), again, secret=secret)
    event = json.loads(same)
    assert (event["type"], event["data"]["id"]) == ("video.completed", video.id)
    assert event["data"]["metadata"]["url"]
