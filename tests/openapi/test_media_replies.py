"""Whole replies of pictures, recordings, vectors, orders, songs and decisions against /openapi.json, read as strictly as it can be:
a member that no schema names is a mistake, and so is one that is named and never comes, or that always comes and is not required."""

import base64
import copy
import json
import struct
import zlib

import jsonschema
import pytest

from conftest import house

DRAFT = jsonschema.Draft202012Validator


def picture():
    """A grey PNG of one pixel."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


def recording():
    """A second of silence: 16 bits, one channel, 8 kHz."""
    data = bytes(16_000)
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 1, 1, 8_000, 16_000, 2, 16, b"data", len(data))
    return head + data


SPEECH = {"file": ("a.wav", recording())}
WORDS = [("response_format", "verbose_json"), ("timestamp_granularities[]", "word"), ("timestamp_granularities[]", "segment")]
QUESTIONS = {
    "yes": {"type": "noul", "instructions": "Is it?"},
    "tone": {"type": "choice", "instructions": "Which?", "criteria": {"calm": None, "angry": "loud"}},
    "how": {"type": "score", "instructions": "How bad?", "criteria": ["low", "high"]},
    "no": {"type": "noul", "instructions": "[[refuse]]"},
}
LISTED = [
    {"type": "predicate", "name": "yes", "instructions": "Is it?"},
    {"type": "choice", "instructions": "Which?", "choices": [{"value": False}, {"value": "yes"}]},
    {"type": "score", "name": "how", "instructions": "How bad?", "levels": [{"label": "low"}, {"label": "high"}]},
    {"type": "predicate", "name": "no", "instructions": "[[refuse]]"},
]
CONTENT = {"content": {"parts": [{"text": "the gate opens"}]}}
DOCUMENTS = {"query": "red apple", "documents": ["a green pear", {"text": "a red apple"}]}

# Path, and what is asked: JSON, or the fields and files of a form.
ASKED = {
    "pictures": ("/v1/images/generations", {"model": "demo-image", "prompt": "a gate", "size": "1024x1024", "quality": "high"}),
    "pictures of which one fails": ("/v1/images/generations", {"model": "demo-image", "prompt": "[[sim:partial fail=1]]", "n": 2}),
    # So large that it has left in part before its end is seen, however large the pieces are: then there is a warning.
    "a large picture that is cut": (
        "/v1/images/generations",
        {"model": "demo-image", "prompt": "[[sim:broken fail=1 kb=5000]]", "n": 2},
    ),
    "a picture by link": ("/v1/images/generations", {"model": "demo-image-url", "prompt": "a gate"}),
    "an edit": ("/v1/images/edits", ([("model", "demo-image"), ("prompt", "a gate")], {"image": ("a.png", picture())})),
    "an edit as JSON": (
        "/v1/images/edits",
        {"model": "demo-image", "prompt": "a gate", "image": "data:image/png;base64," + base64.b64encode(picture()).decode()},
    ),
    "a transcript": ("/v1/audio/transcriptions", ([("model", "demo-whisper")], SPEECH)),
    "a transcript by tokens": ("/v1/audio/transcriptions", ([("model", "demo-transcribe")], SPEECH)),
    "a whole transcript": ("/v1/audio/transcriptions", ([("model", "demo-whisper"), *WORDS], SPEECH)),
    "a transcript of a task": ("/v1/audio/transcriptions", ([("model", "demo-recognition-files"), *WORDS], SPEECH)),
    "a translation": ("/v1/audio/translations", ([("model", "demo-whisper")], SPEECH)),
    "a whole translation": ("/v1/audio/translations", ([("model", "demo-whisper"), WORDS[0]], SPEECH)),
    "vectors": ("/v1/embeddings", {"model": "demo-embedding", "input": ["a", "b"], "encoding_format": "float"}),
    "vectors in base64": ("/v1/embeddings", {"model": "demo-embedding", "input": [1, 2], "encoding_format": "base64"}),
    "vectors of Gemini": ("/v1/embeddings", {"model": "gemini-embedding-demo", "input": "a", "encoding_format": "base64"}),
    "documents": ("/v1/rerank", {"model": "demo-rerank", "return_documents": True, **DOCUMENTS}),
    "documents by number": ("/v2/rerank", {"model": "demo-rerank", "top_n": 1, **DOCUMENTS}),
    "a song": ("/v1/music/generations", {"model": "music-2.0", "prompt": "[[sim:ms=1000]]", "instrumental": True}),
    "a song by link": ("/v1/music/generations", {"model": "music-2.0", "prompt": "[[sim:ms=1000]]", "instrumental": True, "output": "url"}),
    "a song by the second": ("/v1/music/generations", {"model": "eleven-music", "prompt": "a tune", "duration": 3}),
    "answers by name": ("/v1/systemone", {"model": "demo-decision", "state": "I was charged twice.", "questions": QUESTIONS}),
    "answers in order": ("/v1/decisions", {"model": "demo-decision", "input": "I was charged twice.", "questions": LISTED}),
}
for place in ("/v1beta", "/v1"):
    for model in ("demo-embedding", "gemini-embedding-demo"):
        ASKED[f"a vector of {model} below {place}"] = (f"{place}/models/{model}:embedContent", CONTENT)
        ASKED[f"vectors of {model} below {place}"] = (f"{place}/models/{model}:batchEmbedContents", {"requests": [CONTENT, CONTENT]})

# What the schemas name and the demo's providers never say.
NEVER_SEEN = {
    "Transcript.logprobs",
    "Transcript.segments[].speaker",
    "Transcript.segments[].type",
    *(f"SystemOneResult.answers{{}}.{name}" for name in ("box", "box.top", "box.bottom", "box.left", "box.right")),
}
# What comes in each of these replies, because the simulator always says it; other providers need not.
FROM_PROVIDERS = {
    *(f"Decisions.usage.{name}_tokens_details" for name in ("input", "output")),
    *(f"ImageResult.usage.{name}" for name in ("input_tokens", "output_tokens", "total_tokens", "input_tokens_details")),
    *(f"ImageResult.usage.input_tokens_details.{name}_tokens" for name in ("image", "text")),
    *(f"Transcript.segments[].{name}" for name in ("seek", "tokens", "temperature")),
    *(f"Transcript.segments[].{name}" for name in ("avg_logprob", "compression_ratio", "no_speech_prob")),
    *(f"Transcript.usage.input_token_details.{name}_tokens" for name in ("audio", "text")),
}


def pattern(path):
    """The path as the description has it."""
    for model in ("demo-embedding", "gemini-embedding-demo"):
        path = path.replace(f"/{model}:", "/{model}:")
    return path


def sent(path, body):
    if isinstance(body, dict):
        return house().request("POST", path, json.dumps(body).encode())
    boundary, parts = "a-boundary", []
    fields, files = body
    for name, value in fields:
        parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode())
    for name, (called, data) in files.items():
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{called}"\r\n\r\n'
        parts.append(head.encode() + data + b"\r\n")
    kind = ("Content-Type", f"multipart/form-data; boundary={boundary}")
    return house().request("POST", path, b"".join(parts) + f"--{boundary}--\r\n".encode(), headers=[kind])


def closed(schema):
    """A schema, and all inside it, that takes no member that it does not name."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    tight = {name: closed(inner) for name, inner in schema.items()}
    bare = schema.get("type") == "object" and "additionalProperties" not in schema
    if isinstance(schema.get("properties"), dict) or bare:
        tight["additionalProperties"] = False
    return tight


class Description:
    def __init__(self):
        status, _, body = house().request("GET", "/openapi.json")
        assert status == 200
        self.whole = json.loads(body)
        self.components = {"schemas": closed(self.whole["components"]["schemas"])}

    def of(self, path):
        """The name of the shape that a path gives."""
        content = self.whole["paths"][pattern(path)]["post"]["responses"]["200"]["content"]
        return content["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]

    def fits(self, schema):
        return DRAFT({"allOf": [schema], "components": self.components})

    def named(self, name):
        return {"$ref": f"#/components/schemas/{name}"}

    def resolved(self, schema):
        name = schema.get("$ref")
        return self.components["schemas"][name.rsplit("/", 1)[1]] if name else schema

    def branches(self, schema, value):
        """The schema, or those of its alternatives that the value fits."""
        schema = self.resolved(schema)
        either = schema.get("oneOf") or schema.get("anyOf")
        if not either:
            return [schema]
        return [inner for one in either if self.fits(one).is_valid(value) for inner in self.branches(one, value)]


class Members:
    """Which members objects have, by their places."""

    def __init__(self, description):
        self.description = description
        self.described, self.required, self.objects, self.seen = {}, set(), {}, {}

    def named(self, schema, place):
        schema = self.description.resolved(schema)
        for inner in schema.get("oneOf", []) + schema.get("anyOf", []):
            self.named(inner, place)
        for name, inner in schema.get("properties", {}).items():
            self.described[f"{place}.{name}"] = True
            if name in schema.get("required", []):
                self.required.add(f"{place}.{name}")
            self.named(inner, f"{place}.{name}")
        self.inside(schema, lambda inner, mark: self.named(inner, place + mark))

    def inside(self, schema, each):
        for name, mark in (("items", "[]"), ("additionalProperties", "{}")):
            if isinstance(schema.get(name), dict):
                each(schema[name], mark)

    def met(self, schema, value, place):
        for schema in self.description.branches(schema, value):
            known = schema.get("properties", {})
            if isinstance(value, dict) and known:
                # Alternatives are objects of their own.
                kind = f"{place} {sorted(known)}"
                self.objects[kind] = self.objects.get(kind, 0) + 1
                for name in value:
                    self.seen.setdefault(f"{place}.{name}", {}).setdefault(kind, 0)
                    self.seen[f"{place}.{name}"][kind] += 1
                    self.met(known[name], value[name], f"{place}.{name}")
            elif isinstance(value, dict):
                self.inside(schema, lambda inner, mark: [self.met(inner, one, place + mark) for one in value.values()])
            elif isinstance(value, list):
                self.inside(schema, lambda inner, mark: [self.met(inner, one, place + mark) for one in value])

    def always(self):
        """What each object that may have it has."""
        return {name for name, kinds in self.seen.items() if any(self.objects[kind] == count for kind, count in kinds.items())}


@pytest.fixture(scope="module")
def description():
    return Description()


@pytest.fixture(scope="module")
def replies(description):
    all = {}
    for what, (path, body) in ASKED.items():
        status, headers, reply = sent(path, body)
        assert status == 200, (what, status, reply)
        assert headers["content-type"].split(";")[0] == "application/json", what
        all[what] = (description.of(path), json.loads(reply))
    return all


@pytest.mark.parametrize("what", ASKED)
def test_a_reply_is_what_is_described_and_no_more(description, replies, what):
    name, body = replies[what]
    description.fits(description.named(name)).validate(body)


def objects(value, way=()):
    """Each object of a value, with the way to it."""
    if isinstance(value, dict):
        yield way, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, one in inner:
        yield from objects(one, (*way, step))


def changed(body, way, change):
    other = copy.deepcopy(body)
    target = other
    for step in way:
        target = target[step]
    change(target)
    return other


# Maps whose members are named by the caller.
FREE = {"answers", "probabilities", "legend"}


@pytest.mark.parametrize("what", ASKED)
def test_a_reply_with_a_member_more_does_not_fit(description, replies, what):
    name, body = replies[what]
    validator = description.fits(description.named(name))
    for way, one in objects(body):
        if not (way and way[-1] in FREE):
            assert not validator.is_valid(changed(body, way, lambda target: target.update(colour="red"))), way


def test_required_members_always_come_and_what_always_comes_is_required(description, replies):
    members = Members(description)
    for name, body in replies.values():
        members.named(description.named(name), name)
        members.met(description.named(name), body, name)
    assert members.described.keys() - members.seen.keys() == NEVER_SEEN
    assert members.always() - members.required == FROM_PROVIDERS


def test_a_reply_without_a_required_member_does_not_fit(description, replies):
    members = Members(description)
    for name, body in replies.values():
        members.named(description.named(name), name)
    refused = 0
    for name, body in replies.values():
        validator = description.fits(description.named(name))
        for member in list(body):
            without = changed(body, (), lambda target: target.pop(member))
            assert validator.is_valid(without) == (f"{name}.{member}" not in members.required), (name, member)
            refused += f"{name}.{member}" in members.required
    assert refused > 2 * len(replies), "each reply has some"
