"""The asynchronous client: the same calls, and many of them at once."""

import asyncio

import openai
import pytest

from house import TWELVE, Till, price_of

ASK = {"model": "tollgate-demo", "messages": [{"role": "user", "content": "Hello there, gate!"}]}


def with_client(house, work, key=None):
    async def run():
        options = dict(api_key=key or house.key, base_url=house.base_url + "/v1", max_retries=0, timeout=60)
        async with openai.AsyncOpenAI(**options, _strict_response_validation=True) as client:
            return await work(client)

    return asyncio.run(run())


def test_plain_streamed_and_helper(house):
    till = Till(house)

    async def work(client):
        raw = await client.chat.completions.with_raw_response.create(**ASK)
        assert raw.parse().choices[0].message.content == TWELVE
        ids = [raw.headers["x-request-id"]]
        stream = await client.chat.completions.create(**ASK, stream=True, stream_options={"include_usage": True})
        chunks = [chunk async for chunk in stream]
        assert chunks[-1].usage.completion_tokens == 12
        ids.append(stream.response.headers["x-request-id"])
        helper = getattr(client.chat.completions, "stream", None) or client.beta.chat.completions.stream
        async with helper(**ASK) as events:
            final = await events.get_final_completion()
            ids.append(events._response.headers["x-request-id"])
        assert final.choices[0].message.content == TWELVE
        return ids

    rows = [house.usage(call_id) for call_id in with_client(house, work)]
    assert [row["charge_nano_usd"] for row in rows] == [170_100] * 3
    till.fell_by(3 * 170_100)


def test_errors(house):
    async def work(client):
        with pytest.raises(openai.NotFoundError):
            await client.chat.completions.create(**ASK | {"model": "no-such-model"})
        stream = await client.chat.completions.create(**ASK | {"model": "demo-cut"}, stream=True)
        with pytest.raises(openai.APIError):
            async for _ in stream:
                pass

    with_client(house, work)


def test_many_at_once_add_up(house):
    _, key = house.account("busy", paid="50")
    till = Till(house, key)

    async def one(client, words):
        text = f"go [[sim:tokens={words} think_ms=20]]"
        messages = [{"role": "user", "content": text}]
        if words % 2:
            reply = await client.chat.completions.create(model="tollgate-demo", messages=messages)
            return reply.usage.completion_tokens
        stream = await client.chat.completions.create(model="tollgate-demo", messages=messages, stream=True)
        return sum([1 async for chunk in stream if chunk.choices[0].delta.content])

    async def work(client):
        return await asyncio.gather(*(one(client, words) for words in range(1, 61)))

    assert with_client(house, work, key) == list(range(1, 61))
    row_charges = [row["charge_nano_usd"] for row in house.get("/v1/usage?limit=100", key)["data"]]
    expected = [price_of({"input": 3, "output": words}, "tollgate-demo", topped_up=True) for words in range(1, 61)]
    assert sorted(row_charges) == expected
    till.fell_by(sum(expected))


def test_a_balance_is_never_overdrawn(house):
    """Money for three calls: at most three of twenty run, the others get 402, and what is left is exact."""
    _, key = house.account("three", trial="0.0012")
    ask = {**ASK, "messages": [{"role": "user", "content": "[[sim:tokens=20 think_ms=400]]"}], "max_tokens": 20}

    async def one(client):
        try:
            return (await client.chat.completions.create(**ask)).usage.completion_tokens
        except openai.APIStatusError as error:
            assert error.status_code == 402, error
            return None

    async def work(client):
        return await asyncio.gather(*(one(client) for _ in range(20)))

    outcomes = with_client(house, work, key)
    served = [tokens for tokens in outcomes if tokens]
    # a call costs 2 × 3 + 20 × 15 = 306 micro-USD, and its hold at least that
    assert 1 <= len(served) <= 3 and set(served) == {20}, outcomes
    till = Till(house, key)
    assert till.available == 1_200_000 - 306_000 * len(served)
