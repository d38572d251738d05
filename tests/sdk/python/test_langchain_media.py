"""What LangChain has beyond chat: pictures, recordings, an order of documents, decisions. Runs in the environment `langchain`."""

import struct

import pytest

pytest.importorskip("langchain_community", reason="in the environment `langchain` only")

from langchain_cohere import CohereRerank
from langchain_community.document_loaders.parsers.audio import OpenAIWhisperParser
from langchain_community.utilities.dalle_image_generator import DallEAPIWrapper
from langchain_core.documents import Document
from langchain_core.documents.base import Blob
from langchain_openai.decisions import Choice, OpenAIDecisions, Predicate


def test_the_wrapper_for_pictures(house):
    wrapper = DallEAPIWrapper(
        model="demo-image-url", api_key=house.key, base_url=house.base_url + "/v1", n=2, size="1024x1024", quality=None, max_retries=0
    )
    links = wrapper.run("a gate at dusk").split("\n")
    assert len(links) == 2 and all(link.startswith("http") for link in links)
    assert house.newest()["charge_nano_usd"] == 2 * 10_000_000


def test_the_parser_of_recordings(house, tmp_path):
    path = tmp_path / "speech.wav"
    data = bytes(3 * 8_000 * 2)
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1, 1, 8_000, 16_000, 2, 16, b"data", len(data))
    path.write_bytes(head + data)
    parser = OpenAIWhisperParser(house.key, base_url=house.base_url + "/v1", model="demo-whisper")
    (document,) = parser.lazy_parse(Blob.from_path(path))
    assert document.page_content.startswith("sim heard ")
    # It sends an mp3 that it has made of the file: three seconds, and what an encoder adds at both ends.
    assert house.newest()["charge_nano_usd"] in (300_000, 400_000)


def test_an_order_of_documents(house):
    order = CohereRerank(model="demo-rerank", cohere_api_key=house.key, base_url=house.base_url, top_n=1)
    pages = [Document("a green pear"), Document("a red apple")]
    (first,) = order.compress_documents(pages, "red apple")
    assert (first.page_content, first.metadata["relevance_score"]) == ("a red apple", 1)
    assert house.newest()["charge_nano_usd"] == 2_000_000


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
def test_decisions(house):
    decisions = OpenAIDecisions(model="demo-decision", api_key=house.key, base_url=house.base_url + "/v1", max_retries=0)
    questions = {
        "billing": Predicate(instructions="Is this about billing?"),
        "tone": Choice(instructions="Which tone?", choices={"angry": "loud", "calm": "quiet"}),
    }
    reply = decisions.invoke({"input": "I was charged twice.", "questions": questions})
    assert (reply.predicates["billing"].probability, reply.choices["tone"].choice) == (0.75, "angry")
