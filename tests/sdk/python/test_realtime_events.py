"""Every event of the official SDK's types, in both directions: passed, translated, or answered by a named error.

The lists come from the SDK's unions, so an event that the SDK learns and we do not know fails here.
"""

import os
import pathlib
import re
import typing

import pytest

from talk import pcm, text

NEWEST = os.environ.get("TOLLGATE_SDKS") == "newest"
pytestmark = pytest.mark.skipif(not NEWEST, reason="older SDKs know the beta interface only")

MODELS = ["demo-realtime", "gemini-demo-live", "demo-omni"]
PAGE = pathlib.Path(__file__).parents[3] / "docs/realtime-forms.md"
HELLO = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello [[sim:tokens=2]]"}]}

# What is said, and what answers it where it is not an error by its name. Nothing answers audio.
CLIENT = {
    "session.update": ({"session": {"type": "realtime", "output_modalities": ["text"]}}, "session.updated"),
    "conversation.item.create": ({"item": HELLO}, "conversation.item.added"),
    "response.create": ({}, "response.done"),
    "response.cancel": ({}, "response.done"),
    "conversation.item.retrieve": ({"item_id": "nothing"}, "conversation.item.retrieved"),
    "conversation.item.truncate": (
        {"item_id": "nothing", "content_index": 0, "audio_end_ms": 0},
        "conversation.item.truncated",
    ),
    "conversation.item.delete": ({"item_id": "nothing"}, "conversation.item.deleted"),
    "output_audio_buffer.clear": ({}, "output_audio_buffer.cleared"),
    "input_audio_buffer.append": ({"audio": text(pcm(200, 0))}, None),
    "input_audio_buffer.commit": ({}, "input_audio_buffer.committed"),
    "input_audio_buffer.clear": ({}, "input_audio_buffer.cleared"),
}


def kinds(union):
    """The values of `type` of all members of a union."""
    if hasattr(union, "model_fields"):
        return set(typing.get_args(union.model_fields["type"].annotation))
    return set().union(*(kinds(member) for member in typing.get_args(union) if typing.get_args(member) or hasattr(member, "model_fields")))


def listed(heading):
    """The events in a table of the page."""
    table = PAGE.read_text().split(f"| {heading} |", 1)[1].split("\n\n", 1)[0]
    cells = [row.split("|")[1] for row in table.splitlines()[2:]]
    return {name for cell in cells for name in re.findall("`([a-z_.]+)`", cell)}


def test_the_page_has_every_event_of_the_sdk():
    from openai.types.realtime import RealtimeClientEvent, RealtimeServerEvent

    assert kinds(RealtimeClientEvent) == set(CLIENT) == listed("client event")
    assert kinds(RealtimeServerEvent) == listed("server event")


@pytest.mark.parametrize("model", MODELS)
def test_every_client_event_is_answered(client, model):
    with client.realtime.connect(model=model) as connection:
        assert connection.recv().type == "session.created"
        for kind, (rest, answer) in {**CLIENT, "no.such.event": ({}, "nothing")}.items():
            name = f"mine_{kind}"
            connection.send({"type": kind, "event_id": name, **rest})
            while answer:
                event = connection.recv()
                assert event.event_id, event
                if event.type == "error":
                    assert event.error.event_id == name and event.error.message, (kind, event)
                    assert event.error.code or event.error.type, event
                    break
                if event.type == answer:
                    break


# Those that nobody but the provider begins: they pass as they came.
PASSIVE = [
    "conversation.created", "conversation.item.input_audio_transcription.segment", "input_audio_buffer.dtmf_event_received",
    "mcp_list_tools.completed", "mcp_list_tools.failed", "mcp_list_tools.in_progress", "output_audio_buffer.cleared",
    "output_audio_buffer.started", "output_audio_buffer.stopped", "response.mcp_call.completed", "response.mcp_call.failed",
    "response.mcp_call.in_progress", "response.mcp_call_arguments.delta", "response.mcp_call_arguments.done",
    "conversation.item.retrieved", "conversation.item.truncated", "conversation.item.deleted", "input_audio_buffer.speech_started",
]


def test_what_a_provider_says_passes(client):
    with client.realtime.connect(model="demo-realtime") as connection:
        assert connection.recv().type == "session.created"
        for kind in [*PASSIVE, "rate_limits.updated", "response.telepathy.delta"]:
            content = [{"type": "input_text", "text": f"[[sim:unknown_event kind={kind}]]"}]
            connection.conversation.item.create(item={"type": "message", "role": "user", "content": content})
            connection.response.create()
            seen = []
            while not seen or seen[-1] != "response.done":
                seen.append(connection.recv().type)
            assert (kind in seen) == (kind != "rate_limits.updated"), (kind, seen)
