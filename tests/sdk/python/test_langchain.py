"""LangChain's three providers, four ways, against a provider of every dialect. Runs in an environment of its own."""

import pytest

pytest.importorskip("langchain_openai", reason="in the environment `langchain` only")

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI

from dialects import MODELS, SCHEMA

WORDS = "the gate opens for every coin"


def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


def chat(house, model):
    return ChatOpenAI(model=model, base_url=house.base_url + "/v1", api_key=house.key, max_retries=0, stream_usage=True)


def responses(house, model):
    return ChatOpenAI(model=model, base_url=house.base_url + "/v1", api_key=house.key, max_retries=0, use_responses_api=True)


def messages(house, model):
    return ChatAnthropic(model=model, base_url=house.base_url, api_key=house.key, max_retries=0, max_tokens=4000)


def google(house, model):
    return ChatGoogleGenerativeAI(model=model, base_url=house.base_url, api_key=house.key, max_retries=1, transport="rest")


@pytest.fixture(params=[chat, responses, messages, google], ids=lambda make: make.__name__)
def llm(house, request, model):
    return request.param(house, model)


@pytest.fixture(params=MODELS)
def model(request):
    return request.param


def text(message):
    return message.text if isinstance(message.text, str) else message.text()


def test_plain(llm):
    reply = llm.invoke("Say it. [[sim:tokens=6]]")
    assert text(reply) == WORDS
    assert (reply.usage_metadata["input_tokens"], reply.usage_metadata["output_tokens"]) == (3, 6)


def test_stream(llm):
    whole = None
    for piece in llm.stream("Say it. [[sim:tokens=6]]"):
        whole = piece if whole is None else whole + piece
    assert text(whole) == WORDS
    assert (whole.usage_metadata["input_tokens"], whole.usage_metadata["output_tokens"]) == (3, 6)


def test_parallel_tools_and_the_turn_with_their_results(llm):
    bound = llm.bind_tools([weather])
    question = HumanMessage("Weather? [[sim:tools calls=2]]")
    reply = bound.invoke([question])
    assert [(call["name"], call["args"]) for call in reply.tool_calls] == [("weather", {"city": "Paris"})] * 2
    results = [ToolMessage(weather(**call["args"]), tool_call_id=call["id"], name=call["name"]) for call in reply.tool_calls]
    end = bound.invoke([question, reply, *results])
    assert text(end) and not end.tool_calls


def test_an_answer_in_a_schema(llm):
    structured = llm.with_structured_output(SCHEMA | {"title": "n", "description": "a number"}, method="json_schema")
    assert structured.invoke("As JSON.") == {"n": 7}


def test_errors_are_raised(llm):
    with pytest.raises(Exception, match="model_options|refused|400"):
        llm.invoke("[[sim:error400]]")
