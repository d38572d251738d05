"""Tool calls: whole, streamed, in parallel, and the turn that brings their results."""

import json

from test_streams import helper, streamed

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
            "additionalProperties": False,
        },
    },
}
CLOCK = {
    "type": "function",
    "function": {
        "name": "get_time",
        "strict": True,
        "parameters": {"type": "object", "properties": {"zone": {"enum": ["UTC", "CET"]}}, "required": ["zone"], "additionalProperties": False},
    },
}
QUESTION = {"role": "user", "content": "Weather and time?"}
ASK = {"model": "demo-tools", "messages": [QUESTION], "tools": [WEATHER, CLOCK]}
ARGUMENTS = {"get_weather": {"city": "Paris", "days": 7}, "get_time": {"zone": "UTC"}}


def check(calls):
    assert [call.type for call in calls] == ["function", "function"]
    assert {call.function.name: json.loads(call.function.arguments) for call in calls} == ARGUMENTS
    assert len({call.id for call in calls}) == 2 and all(call.id for call in calls)


def cost(calls):
    """The simulator counts one token for a name and one for each word of the arguments."""
    return sum(1 + len(call.function.arguments.split()) for call in calls)


def test_two_turns(house, client, till):
    raw = client.chat.completions.with_raw_response.create(**ASK)
    reply = raw.parse()
    message = reply.choices[0].message
    assert reply.choices[0].finish_reason == "tool_calls" and message.content is None
    check(message.tool_calls)
    till.charged(raw.headers["x-request-id"], "demo-tools", input=3, output=cost(message.tool_calls))

    results = [{"role": "tool", "tool_call_id": call.id, "content": "fine, really fine"} for call in message.tool_calls]
    turn = [QUESTION, message.model_dump(exclude_none=True), *results]
    mark = house.seen_by_provider()
    raw = client.chat.completions.with_raw_response.create(**ASK | {"messages": turn})
    reply = raw.parse()
    assert reply.choices[0].finish_reason == "stop" and reply.choices[0].message.content
    assert reply.choices[0].message.tool_calls is None
    till.charged(raw.headers["x-request-id"], "demo-tools", input=9, output=12)
    [seen] = house.received(mark)
    assert seen["body"]["messages"] == turn and seen["body"]["tools"] == [WEATHER, CLOCK]


def test_one_at_a_time(client):
    reply = client.chat.completions.create(**ASK, parallel_tool_calls=False)
    assert len(reply.choices[0].message.tool_calls) == 1


def test_tools_switched_off(client):
    reply = client.chat.completions.create(**ASK, tool_choice="none")
    assert reply.choices[0].finish_reason == "stop" and reply.choices[0].message.tool_calls is None


def test_by_marker_on_another_model(client, till):
    request = {**ASK, "model": "tollgate-demo", "messages": [{"role": "user", "content": "go [[sim:tools calls=3]]"}]}
    raw = client.chat.completions.with_raw_response.create(**request)
    calls = raw.parse().choices[0].message.tool_calls
    assert [call.function.name for call in calls] == ["get_weather", "get_time", "get_weather"]
    till.charged(raw.headers["x-request-id"], "tollgate-demo", input=3, output=cost(calls))


def test_streamed_fragments(client, till):
    chunks, call_id = streamed(client, **ASK)
    calls = {}
    for chunk in chunks:
        for fragment in chunk.choices[0].delta.tool_calls or []:
            if fragment.id:
                assert fragment.index == len(calls), "contiguous from 0, id and name once"
                calls[fragment.index] = [fragment.id, fragment.function.name, ""]
                assert fragment.type == "function"
            calls[fragment.index][2] += fragment.function.arguments or ""
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert {name: json.loads(arguments) for _, name, arguments in calls.values()} == ARGUMENTS
    tokens = sum(1 + len(arguments.split()) for _, _, arguments in calls.values())
    till.charged(call_id, "demo-tools", input=3, output=tokens)


def test_the_helper_puts_fragments_together(client, till):
    done = {}
    with helper(client)(**ASK) as stream:
        for event in stream:
            if event.type == "tool_calls.function.arguments.done":
                done[event.name] = json.loads(event.arguments)
        final = stream.get_final_completion()
        call_id = stream._response.headers["x-request-id"]
    assert done == ARGUMENTS
    check(final.choices[0].message.tool_calls)
    till.charged(call_id, "demo-tools", input=3, output=cost(final.choices[0].message.tool_calls))

    results = [{"role": "tool", "tool_call_id": call.id, "content": "12"} for call in final.choices[0].message.tool_calls]
    said = final.choices[0].message.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True)
    for call in said["tool_calls"]:
        call.pop("index", None)
        call["function"].pop("parsed_arguments", None)
    chunks, call_id = streamed(client, **ASK | {"messages": [QUESTION, said, *results]})
    assert chunks[-1].choices[0].finish_reason == "stop"
    till.charged(call_id, "demo-tools", input=5, output=12)
