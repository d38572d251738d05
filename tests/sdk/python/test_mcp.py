"""The official client of the Model Context Protocol against `/mcp`, over HTTP and through `tollgate mcp` on stdio."""

import asyncio
import json
import os

import pytest

# The newest set of SDKs has it, and there it must not be missing unnoticed.
if os.environ.get("TOLLGATE_SDKS") != "newest":
    pytest.importorskip("mcp", reason="only the newest set of SDKs has it")

import httpx2
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from house import executable


async def over_http(house, query, work):
    headers = {"Authorization": f"Bearer {house.key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        async with streamable_http_client(house.base_url + "/mcp" + query, http_client=http) as streams:
            async with ClientSession(streams[0], streams[1]) as session:
                await session.initialize()
                return await work(session)


async def over_stdio(house, options, work):
    server = StdioServerParameters(
        command=executable(),
        args=["mcp", "--url", house.base_url, *options],
        env={"TOLLGATE_API_KEY": house.key},
    )
    async with stdio_client(server) as streams:
        async with ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            return await work(session)


async def lists_and_calls(session):
    tools = (await session.list_tools()).tools
    answer = await session.call_tool("social-weibo-user", {"uid": "7"})
    refused = await session.call_tool("social-weibo-user", {})
    return tools, answer, refused


@pytest.mark.parametrize("way", ["http", "stdio"])
def test_tools_are_listed_and_called(house, way):
    before = house.balance()["available_nano_usd"]
    if way == "http":
        work = over_http(house, "?platform=weibo", lists_and_calls)
    else:
        work = over_stdio(house, ["--platform", "weibo"], lists_and_calls)
    tools, answer, refused = asyncio.run(work)
    names = [tool.name for tool in tools]
    assert names == [f"social-weibo-{name}" for name in ("search", "post", "user", "comments", "user-posts", "trending")]
    assert (answer.is_error, refused.is_error) == (False, True)
    result = json.loads(answer.content[0].text)
    assert result["object"] == "social.result" and result["platform"] == "weibo"
    assert "7411193113223371043" in answer.content[0].text
    assert "missing_parameter" in refused.content[0].text
    assert before - house.balance()["available_nano_usd"] == 2_000_000, "one call with data"
