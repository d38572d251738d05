"""LangChain's three providers, four ways, against a provider of every dialect. Runs in an environment of its own."""

import base64
import json

import pytest

pytest.importorskip("langchain_openai", reason="in the environment `langchain` only")

import anthropic
import openai
import tiktoken
from google.genai import errors as google_errors
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

from dialects import MODELS, PICTURE, SCHEMA

WORDS = "the gate opens for every coin"


def weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


def chat(house, model, *, thinking=False):
    more = {"reasoning_effort": "high"} if thinking else {}
    return ChatOpenAI(model=model, base_url=house.base_url + "/v1", api_key=house.key, max_retries=0, stream_usage=True, **more)


def responses(house, model, *, thinking=False):
    more = {"reasoning": {"effort": "high", "summary": "auto"}, "include": ["reasoning.encrypted_content"], "store": False}
    options = dict(model=model, base_url=house.base_url + "/v1", api_key=house.key, max_retries=0, use_responses_api=True)
    return ChatOpenAI(**options, **(more if thinking else {}))


def messages(house, model, *, thinking=False):
    more = {"thinking": {"type": "enabled", "budget_tokens": 1024}} if thinking else {}
    return ChatAnthropic(model=model, base_url=house.base_url, api_key=house.key, max_retries=0, max_tokens=4000, **more)


def google(house, model, *, thinking=False):
    more = {"include_thoughts": True} if thinking else {}
    return ChatGoogleGenerativeAI(model=model, base_url=house.base_url, api_key=house.key, max_retries=1, **more)


@pytest.fixture(params=[chat, responses, messages, google], ids=lambda make: make.__name__)
def make(request):
    return request.param


@pytest.fixture
def llm(house, make, model):
    return make(house, model)


@pytest.fixture(params=MODELS)
def model(request):
    return request.param


def text(message):
    return message.text if isinstance(message.text, str) else message.text()


def test_plain(llm):
    reply = llm.invoke("Say it. [[sim:tokens=6]]")
    assert text(reply) == WORDS
    assert (reply.usage_metadata["input_tokens"], reply.usage_metadata["output_tokens"]) == (3, 6)


def streamed(llm, asked):
    """All pieces of a stream, put together as LangChain does it."""
    pieces = list(llm.stream(asked))
    return sum(pieces[1:], pieces[0])


def test_stream(llm):
    whole = streamed(llm, "Say it. [[sim:tokens=6]]")
    assert text(whole) == WORDS
    assert (whole.usage_metadata["input_tokens"], whole.usage_metadata["output_tokens"]) == (3, 6)


def two_turns(llm, question, *, stream=False):
    """Two calls of a tool, and the turn with their results; the first answer is sent back as LangChain keeps it."""
    bound = llm.bind_tools([weather])
    question = HumanMessage(question)
    reply = streamed(bound, [question]) if stream else bound.invoke([question])
    assert [(call["name"], call["args"]) for call in reply.tool_calls] == [("weather", {"city": "Paris"})] * 2
    results = [ToolMessage(weather(**call["args"]), tool_call_id=call["id"], name=call["name"]) for call in reply.tool_calls]
    end = bound.invoke([question, reply, *results])
    assert text(end) and not end.tool_calls
    return reply


def test_parallel_tools_and_the_turn_with_their_results(llm):
    two_turns(llm, "Weather? [[sim:tools calls=2]]")


def test_streamed_tools_and_the_turn_with_their_results(llm):
    two_turns(llm, "Weather? [[sim:tools calls=2]]", stream=True)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_thoughts_survive_the_second_turn(house, make, model, stream):
    mark = house.seen_by_provider()
    reply = two_turns(make(house, model, thinking=True), "Think. [[sim:reasoning_tools calls=2]]", stream=stream)
    # LangChain's reader of chat completions does not know thoughts: that turn goes on without them.
    if make is not chat:
        assert "reasoning" in [block["type"] for block in reply.content_blocks]
    assert [seen["status"] for seen in house.received(mark)] == [200, 200]


def test_a_picture_reaches_the_provider(house, llm):
    data = base64.b64encode(PICTURE).decode()
    picture = {"type": "image", "base64": data, "mime_type": "image/png"}
    mark = house.seen_by_provider()
    reply = llm.invoke([HumanMessage([{"type": "text", "text": "What is it? [[sim:tokens=6]]"}, picture])])
    assert text(reply) == WORDS
    [seen] = house.received(mark)
    assert data[:60] in json.dumps(seen["body"])


def test_an_answer_in_a_schema(llm):
    structured = llm.with_structured_output(SCHEMA | {"title": "n", "description": "a number"}, method="json_schema")
    assert structured.invoke("As JSON.") == {"n": 7}


def sdks_own(make, error):
    """The error of the SDK under LangChain's: its class, the status, our word for it."""
    cause = error.__cause__
    if make is google:
        return type(cause), cause.code, cause.details["error"]["details"][0]["reason"]
    return type(cause), cause.status_code, cause.code if make in (chat, responses) else cause.body["error"]["code"]


@pytest.mark.parametrize(
    "scenario, kind, status, code, openais, anthropics, text",
    [
        ("error400", "InvalidRequestError", 400, "invalid_request", openai.BadRequestError, anthropic.BadRequestError,
         "Unsupported value: 'model_options' does not support 7 with this model."),
        ("error429", "RateLimitError", 429, "rate_limit_exceeded", openai.RateLimitError, anthropic.RateLimitError,
         "The provider is limiting requests; try again in a moment."),
    ],
    ids=["refused", "busy"],
)
def test_errors_have_the_class_and_code_of_langchain(llm, make, scenario, kind, status, code, openais, anthropics, text):
    with pytest.raises(Exception) as raised:
        llm.invoke(f"[[sim:{scenario}]]")
    maker = {chat: "OpenAI", responses: "OpenAI", messages: "Anthropic", google: "Google"}[make]
    assert type(raised.value).__name__ == maker + kind, repr(raised.value)
    under = {chat: openais, responses: openais, messages: anthropics, google: google_errors.ClientError}[make]
    assert sdks_own(make, raised.value) == (under, status, code)
    assert text in str(raised.value)


def test_a_broken_stream_raises(llm, make):
    said = []
    with pytest.raises(Exception) as raised:
        said.extend(text(piece) for piece in llm.stream("[[sim:cut_midstream after=2 cut=eof]]"))
    error = raised.value
    assert "".join(said), "what was said until then has arrived"
    assert "The provider ended the stream before it was complete." in str(error)
    if make is chat:
        assert (type(error), error.code) == (openai.APIError, "upstream_error")
    elif make is responses:
        # LangChain makes this of an event `response.failed`; of its error only OpenAI's own words are let through.
        assert type(error) is ValueError and "code='server_error'" in str(error)
    elif make is messages:
        assert (type(error), error.body["error"]["code"]) == (anthropic.APIStatusError, "upstream_error")
    else:
        assert type(error).__name__ == "GoogleAPIError"
        assert sdks_own(make, error) == (google_errors.ServerError, 502, "upstream_error")


def test_leaving_ends_the_call(house, llm, model):
    def leave():
        stream = llm.stream("[[sim:tokens=200 delay_ms=50]]")
        for piece in stream:
            if text(piece):
                break
        stream.close()

    house.left(model, leave)


@pytest.mark.parametrize("name", ["demo-embedding", "gemini-embedding-demo"])
def test_embeddings(house, name):
    options = dict(model=name, base_url=house.base_url + "/v1", api_key=house.key, max_retries=0)
    # As text: for the lengths it counts by itself it would fetch a vocabulary.
    texts = OpenAIEmbeddings(**options, check_embedding_ctx_length=False)
    one, two = texts.embed_documents(["the gate opens", "for every coin"])
    assert len(one) == len(two) == 8 and one != two
    assert texts.embed_query("the gate opens") == pytest.approx(one)


@pytest.fixture
def vocabulary(monkeypatch):
    """What LangChain counts by, without fetching it: every byte is a token. All else is as it comes."""
    bytes_alone = tiktoken.Encoding(
        name="cl100k_base", pat_str=r"[\s\S]+", mergeable_ranks={bytes([byte]): byte for byte in range(256)}, special_tokens={}
    )
    monkeypatch.setitem(tiktoken.registry.ENCODINGS, "cl100k_base", bytes_alone)


def test_embeddings_by_their_default_are_tokens(house, vocabulary):
    mark = house.seen_by_provider()
    options = dict(base_url=house.base_url + "/v1", api_key=house.key, max_retries=0)
    texts = OpenAIEmbeddings(model="demo-embedding", **options)
    # The last is longer than LangChain sends at once: it is cut, and its vectors are put together again.
    one, two, long = texts.embed_documents(["the gate opens", "for every coin", "coin " * 2_000])
    assert len(one) == len(two) == len(long) == 8 and one != two
    assert texts.embed_query("the gate opens") == pytest.approx(one)
    sent = [item for seen in house.received(mark) for item in seen["body"]["input"]]
    assert bytes(sent[0]) == b"the gate opens" and sum(len(item) for item in sent) == 14 + 14 + 10_000 + 14
    row = house.newest()
    assert (row["usage"]["input"], row["estimated"]) == (14, False), row
    # Numbers of one maker's tokens mean nothing to another.
    with pytest.raises(openai.BadRequestError) as refused:
        OpenAIEmbeddings(model="gemini-embedding-demo", **options).embed_query("the gate opens")
    assert refused.value.param == "input"
