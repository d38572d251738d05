"""Embeddings, rerank and decisions by the SDKs that ask for them."""

import base64
import os
import struct

import openai
import pytest

SDKS = os.environ.get("TOLLGATE_SDKS", "newest")


def numbers(entry):
    """A vector in either form."""
    if isinstance(entry, str):
        raw = base64.b64decode(entry)
        return [round(one, 3) for one in struct.unpack(f"<{len(raw) // 4}f", raw)]
    return [round(one, 3) for one in entry]


MODELS = ["demo-embedding", "gemini-embedding-demo"]


@pytest.fixture
def lenient(house):
    """Strict, the SDK holds a reply against its types before it has unpacked the base64 that it asked for by itself."""
    with openai.OpenAI(api_key=house.key, base_url=house.base_url + "/v1", max_retries=0, timeout=30) as client:
        yield client


@pytest.mark.parametrize("model", MODELS)
def test_the_default_is_base64_and_a_list_is_the_same(client, lenient, model):
    # Nothing said: the SDK asks for base64 and unpacks it.
    packed = lenient.embeddings.create(model=model, input=["the gate opens", "for every coin"])
    plain = client.embeddings.create(model=model, input=["the gate opens", "for every coin"], encoding_format="float")
    assert [numbers(one.embedding) for one in packed.data] == [numbers(one.embedding) for one in plain.data]
    assert [one.index for one in packed.data] == [0, 1] and packed.model == model
    assert packed.usage.prompt_tokens == packed.usage.total_tokens > 0
    assert len(packed.data[0].embedding) == 8


@pytest.mark.parametrize("model", MODELS)
def test_dimensions_and_the_charge(client, till, model):
    asked = dict(model=model, input="the gate opens", dimensions=16, encoding_format="float")
    raw = client.embeddings.with_raw_response.create(**asked)
    reply = raw.parse()
    assert len(reply.data[0].embedding) == 16
    counted = model != "demo-embedding"
    till.charged(raw.headers["x-request-id"], model, estimated=counted, input=reply.usage.prompt_tokens)


def test_tokens_of_openai_pass(client, lenient):
    for tokens in ([1, 2, 3], [[1, 2], [3]]):
        reply = lenient.embeddings.create(model="demo-embedding", input=tokens)
        assert reply.usage.prompt_tokens == 3
    with pytest.raises(openai.BadRequestError) as refused:
        client.embeddings.create(model="gemini-embedding-demo", input=[1, 2, 3])
    assert refused.value.param == "input"


def test_an_unusable_reply_is_not_asked_for_again(house, client):
    mark = house.seen_by_provider()
    with pytest.raises(openai.InternalServerError):
        client.with_options(max_retries=2).embeddings.create(model="demo-embedding", input="[[sim:garbage]]")
    assert len(house.received(mark)) == 1, "the SDK was set not to"


def test_google_genai_embeds(house):
    from google import genai
    from google.genai import types

    google = genai.Client(api_key=house.key, http_options=types.HttpOptions(base_url=house.base_url))
    for model in MODELS:
        reply = google.models.embed_content(
            model=model, contents=["the gate opens", "for every coin"], config=types.EmbedContentConfig(output_dimensionality=4)
        )
        assert [len(one.values) for one in reply.embeddings] == [4, 4]


@pytest.mark.skipif(SDKS != "newest", reason="no earlier version asks for decisions")
def test_decisions(client):
    reply = client.decisions.create(
        model="demo-decision",
        input="I was charged twice.",
        questions=[
            {"type": "predicate", "name": "billing", "instructions": "Is this about billing?"},
            {"type": "choice", "instructions": "Is it?", "choices": [{"value": False}, {"value": "yes"}]},
            {"type": "score", "instructions": "How bad?", "levels": [{"label": "low"}, {"label": "high"}]},
            {"type": "predicate", "name": "no", "instructions": "[[refuse]]"},
        ],
    )
    billing, choice, score, refusal = reply.answers
    assert (billing.type, billing.name, billing.probability) == ("predicate", "billing", 0.75)
    assert choice.choice is False and score.probabilities[1].label == "high"
    assert refusal.type == "refusal" and reply.usage.input_tokens > 0


@pytest.mark.skipif(SDKS != "newest", reason="pinned with the newest only")
def test_typesafe_sdk(house):
    from typesafe_sdk import Choice, Image, Noul, Score, TypeSafeClient

    with TypeSafeClient(api_key=house.key, base_url=house.base_url, model="demo-decision") as typesafe:
        assert "demo-decision" in [model.name for model in typesafe.models.list().models]
        questions = {
            "billing": Noul(instructions="Is this about billing?", criteria={"true": "money"}),
            "tone": Choice(criteria={"angry": "loud", "calm": None}),
            "level": Score(criteria=["low", "high"]),
        }
        reply = typesafe.system_one(state="I was charged twice.", questions=questions)
        assert reply.nouls["billing"].noul == 0.75 and reply.choices["tone"].choice == "angry"
        assert reply.scores["level"].legend == {0: "low", 1: "high"} and reply.model == "demo-decision"
        # Long enough to be packed with zstd.
        reply = typesafe.system_one(state={"text": "word " * 1_000}, questions=questions)
        assert reply.usage.input_tokens > 1_000
        photo = Image(b"\x89PNG\r\n\x1a\n and so on")
        reply = typesafe.system_one(state=["see", photo], questions=questions)
        assert reply.nouls["billing"].noul == 0.75


@pytest.mark.skipif(SDKS != "newest", reason="pinned with the newest only")
def test_cohere_reranks(house):
    import cohere

    client = cohere.ClientV2(api_key=house.key, base_url=house.base_url)
    reply = client.rerank(model="demo-rerank", query="red apple", documents=["a green pear", "a red apple"], top_n=1)
    assert [one.index for one in reply.results] == [1] and reply.results[0].relevance_score == 1
    assert reply.meta.billed_units.search_units == 1
