"""Streamed calls: event by event, with the SDK's accumulating helper, and with every way to break off."""

import time

import openai
import pytest

from house import TWELVE


def ask(text="Hello there, gate!", model="tollgate-demo", **more):
    return {"model": model, "messages": [{"role": "user", "content": text}], **more}


def helper(client):
    """The helper moved out of `beta` after 1.x; both names work in some versions."""
    return getattr(client.chat.completions, "stream", None) or client.beta.chat.completions.stream


def streamed(client, **request):
    """All chunks of a stream and the call id."""
    with client.chat.completions.create(**request, stream=True) as stream:
        return list(stream), stream.response.headers["x-request-id"]


def text_of(chunks):
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def test_raw_iteration_without_usage(house, client, till):
    mark = house.seen_by_provider()
    chunks, call_id = streamed(client, **ask())
    assert text_of(chunks) == TWELVE
    assert len(chunks) == 14, "role, twelve words, finish"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * 13 + ["stop"]
    assert {(chunk.id, chunk.created, chunk.model, chunk.object) for chunk in chunks} == {
        (chunks[0].id, chunks[0].created, "tollgate-demo", "chat.completion.chunk")
    }
    assert all(chunk.usage is None for chunk in chunks), "nobody asked for usage"
    [seen] = house.received(mark)
    assert seen["body"]["stream_options"] == {"include_usage": True}, "but the meter did"
    till.charged(call_id, "tollgate-demo", input=3, output=12)


def test_raw_iteration_with_usage(client, till):
    chunks, call_id = streamed(client, **ask("[[sim:tokens=5]]"), stream_options={"include_usage": True})
    assert len(chunks) == 8
    assert chunks[-1].choices == [] and all(chunk.usage is None for chunk in chunks[:-1])
    usage = chunks[-1].usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (1, 5, 6)
    till.charged(call_id, "tollgate-demo", input=1, output=5)


def test_usage_switched_off_by_the_client(client, till):
    chunks, call_id = streamed(client, **ask(), stream_options={"include_usage": False})
    assert text_of(chunks) == TWELVE and all(chunk.choices for chunk in chunks)
    till.charged(call_id, "tollgate-demo", input=3, output=12)


def test_nobody_else_sees_usage_fields(house):
    body = b'{"model":"tollgate-demo","stream":true,"messages":[{"role":"user","content":"Hi"}]}'
    status, headers, stream = house.request("POST", "/v1/chat/completions", body)
    assert status == 200 and headers["content-type"].startswith("text/event-stream")
    assert stream.endswith(b"data: [DONE]\n\n")
    assert b'"usage":{' not in stream


@pytest.mark.parametrize("usage", [True, False])
def test_the_helper_accumulates(client, till, usage):
    more = {"stream_options": {"include_usage": True}} if usage else {}
    kinds, deltas = set(), ""
    with helper(client)(**ask("[[sim:tokens=20]]"), **more) as stream:
        for event in stream:
            kinds.add(event.type)
            if event.type == "content.delta":
                deltas += event.delta
                assert event.snapshot == deltas
        final = stream.get_final_completion()
        call_id = stream._response.headers["x-request-id"]
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert final.choices[0].message.content == deltas and len(deltas.split()) == 20
    assert final.choices[0].finish_reason == "stop"
    assert (final.usage.completion_tokens if final.usage else None) == (20 if usage else None)
    till.charged(call_id, "tollgate-demo", input=1, output=20)


def test_events_do_not_wait(client):
    """Each event arrives when the provider sent it: after four words the provider says nothing more, and all four are here."""
    said = ""
    with client.chat.completions.create(**ask("[[sim:hang_midstream after=4 tokens=9]]"), stream=True) as stream:
        for chunk in stream:
            said += chunk.choices[0].delta.content or ""
            if len(said.split()) == 4:
                break
    assert said.split() == ["the", "gate", "opens", "for"]


def test_several_choices(client, till):
    chunks, call_id = streamed(client, **ask("[[sim:tokens=3]]", n=2))
    said = {0: "", 1: ""}
    for chunk in chunks:
        for choice in chunk.choices:
            said[choice.index] += choice.delta.content or ""
    assert said == {0: "the gate opens", 1: "the gate opens"}
    till.charged(call_id, "tollgate-demo", input=1, output=6)


def test_reasoning_comes_first(client, till):
    chunks, call_id = streamed(client, **ask("[[sim:tokens=3 reasoning=4]]", "demo-reasoning"))
    deltas = [chunk.choices[0].delta for chunk in chunks]
    thought = [i for i, delta in enumerate(deltas) if (delta.model_extra or {}).get("reasoning_content")]
    spoken = [i for i, delta in enumerate(deltas) if delta.content]
    assert len(thought) == 4 and len(spoken) == 3 and max(thought) < min(spoken)
    till.charged(call_id, "demo-reasoning", input=2, output=3, reasoning=4)


@pytest.mark.parametrize("scenario", ["crlf", "crlf kind=cr", "comments", "framing", "no_content_type", "after_done", "split_utf8", "no_done", "no_finish"])
def test_odd_framing_upstream_is_plain_here(client, till, scenario):
    chunks, call_id = streamed(client, **ask(f"[[sim:{scenario} tokens=6]]"))
    assert len(text_of(chunks).split()) == 6
    assert chunks[-1].choices[0].finish_reason == "stop"
    row = till.house.usage(call_id)
    assert row["ending"] == "answered" and row["usage"]["output"] == 6, row


def test_line_separators_inside_text(client):
    chunks, _ = streamed(client, **ask("[[sim:u2028 tokens=3]]"))
    assert text_of(chunks) == "a\u2028b c\u2029d e\u0085f"


def test_line_separators_are_escaped_on_the_wire(house):
    body = b'{"model":"tollgate-demo","stream":true,"messages":[{"role":"user","content":"[[sim:u2028 tokens=3]]"}]}'
    _, _, stream = house.request("POST", "/v1/chat/completions", body)
    for separator in "\u2028\u2029\u0085":
        assert separator.encode() not in stream, hex(ord(separator))


# How a stream can break


def broken(client, text):
    """Reads a stream to its error; returns the error and the call id."""
    with client.chat.completions.create(**ask(text), stream=True) as stream:
        with pytest.raises(openai.APIError) as raised:
            for _ in stream:
                pass
        return raised.value, stream.response.headers["x-request-id"]


@pytest.mark.parametrize(
    ("text", "code", "reason"),
    [
        ("[[sim:error_midstream after=5]]", "upstream_error", "upstream_error"),
        ("[[sim:cut_midstream after=5 cut=reset]]", "upstream_error", "upstream_reset"),
        ("[[sim:cut_midstream after=5 cut=fin]]", "upstream_error", "upstream_reset"),
        ("[[sim:cut_midstream after=5 cut=eof]]", "upstream_error", "truncated"),
        ("[[sim:huge_line mib=3]]", "upstream_invalid_reply", "event_too_long"),
    ],
)
def test_a_broken_stream_raises_and_what_was_delivered_is_charged(client, till, text, code, reason):
    error, call_id = broken(client, text)
    assert type(error) is openai.APIError
    assert (error.code, error.type) == (code, "server_error")
    assert ".internal" not in error.message, "the provider's hosts are not shown"
    row = till.charged(call_id, "tollgate-demo", ending="upstream_fault", estimated=True)
    assert row["reason"] == reason
    assert row["usage"]["output"] > 0


def test_the_words_before_the_break_arrive(client):
    words = []
    with pytest.raises(openai.APIError):
        for chunk in client.chat.completions.create(**ask("[[sim:error_midstream after=5]]"), stream=True):
            words.append(chunk.choices[0].delta.content or "")
    assert "".join(words) == "the gate opens for every"


def test_the_helper_raises_too(client):
    with pytest.raises(openai.APIError):
        with helper(client)(**ask("please", "demo-cut")) as stream:
            stream.until_done()


def test_a_failure_before_the_first_event_has_its_status(client, till):
    with pytest.raises(openai.InternalServerError) as raised:
        client.chat.completions.create(**ask("[[sim:error_first]]"), stream=True)
    assert raised.value.status_code == 502 and raised.value.code == "upstream_error"
    till.free(raised.value.request_id, ending="upstream_fault", status=502)


def test_a_client_that_leaves_pays_for_what_was_said(house, client, till):
    mark = house.seen_by_provider()
    with client.chat.completions.create(**ask("[[sim:tokens=200 delay_ms=50]]"), stream=True) as stream:
        call_id = stream.response.headers["x-request-id"]
        for count, _ in enumerate(stream):
            if count == 6:
                break
    row = till.charged(call_id, "tollgate-demo", ending="client_left", estimated=True)
    assert 0 < row["usage"]["output"] < 60, row
    deadline = time.monotonic() + 60
    while house.received(mark)[0]["client_closed_at_ms"] is None:
        assert time.monotonic() < deadline, "the provider still talks to nobody"
        time.sleep(0.02)


def test_a_streamed_idempotency_key_is_never_charged_twice(client, till):
    headers = {"Idempotency-Key": f"sdk-{openai.__version__}-stream"}
    with client.chat.completions.create(**ask(), stream=True, extra_headers=headers) as stream:
        assert text_of(stream) == TWELVE
        call_id = stream.response.headers["x-request-id"]
    till.charged(call_id, "tollgate-demo", input=3, output=12)
    with pytest.raises(openai.ConflictError):
        client.chat.completions.create(**ask(), stream=True, extra_headers=headers)
    till.fell_by(0)
