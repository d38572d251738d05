"""Four SDKs behind one face, so that a test can ask the same of each: plain, streamed, tools, thoughts, pictures, schemas.

Each class speaks one dialect through its official SDK, with strict validation where the SDK has it. A `Said` is what the test
looks at; `turn` keeps the answer as the SDK gave it, to be sent back as an application would.
"""

import base64
import dataclasses
import json

import anthropic
import openai
from google import genai
from google.genai import errors as google_errors
from google.genai import types

MODELS = ("gemini-demo-openai", "gemini-demo-anthropic", "gemini-demo-responses", "gemini-demo-gemini")
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@dataclasses.dataclass
class Said:
    text: str = ""
    calls: list = dataclasses.field(default_factory=list)  # (id, name, arguments)
    thought: bool = False
    usage: tuple = (0, 0)
    turn: object = None


def unparsed(value):
    return {name: inner for name, inner in value.items() if not name.startswith("parsed")}


class Chat:
    """openai, chat completions."""

    errors = openai.APIStatusError
    stream_error = openai.APIError

    def __init__(self, house, **options):
        options = dict(api_key=house.key, base_url=house.base_url + "/v1", max_retries=0, timeout=30) | options
        self.client = openai.OpenAI(**options, _strict_response_validation=True)

    def user(self, text, picture=None):
        if picture is None:
            return {"role": "user", "content": text}
        url = "data:image/png;base64," + base64.b64encode(picture).decode()
        return {"role": "user", "content": [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]}

    def _options(self, tools, thinking, schema):
        options = {}
        if tools:
            function = {"name": "weather", "description": "The weather", "parameters": PARAMETERS}
            options["tools"] = [{"type": "function", "function": function}]
        if thinking:
            options["reasoning_effort"] = "high"
        if schema:
            options["response_format"] = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True}}
        return options

    def ask(self, model, turns, *, tools=False, thinking=False, schema=False):
        return self._said(self.client.chat.completions.create(model=model, messages=turns, **self._options(tools, thinking, schema)))

    def _said(self, reply):
        message = reply.choices[0].message
        calls = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or []]
        extra = message.model_extra or {}
        return Said(
            text=message.content or "",
            calls=calls,
            thought="reasoning_content" in extra or "reasoning_details" in extra,
            usage=(reply.usage.prompt_tokens, reply.usage.completion_tokens),
            # The helper of streams adds what it parsed, which is not for sending back.
            turn=[json.loads(json.dumps(message.model_dump(exclude_none=True)), object_hook=unparsed)],
        )

    def results(self, said):
        return [{"role": "tool", "tool_call_id": call[0], "content": "sunny"} for call in said.calls]

    def stream(self, model, text, *, tools=False, thinking=False):
        options = self._options(tools, thinking, False)
        with self.client.chat.completions.stream(model=model, messages=[self.user(text)], stream_options={"include_usage": True}, **options) as stream:
            pieces = [event.delta for event in stream if event.type == "content.delta"]
            said = self._said(stream.get_final_completion())
        assert "".join(pieces) == said.text
        return said

    def leave(self, model, text):
        raw = self.client.chat.completions.with_raw_response.create(model=model, messages=[self.user(text)], stream=True)
        stream = raw.parse()
        for event in stream:
            if event.choices and event.choices[0].delta.content:
                break
        stream.close()


class Messages:
    """anthropic."""

    errors = anthropic.APIStatusError
    stream_error = anthropic.APIError

    def __init__(self, house, **options):
        options = dict(api_key=house.key, base_url=house.base_url, max_retries=0, timeout=30) | options
        self.client = anthropic.Anthropic(**options, _strict_response_validation=True)

    def user(self, text, picture=None):
        if picture is None:
            return {"role": "user", "content": text}
        data = base64.b64encode(picture).decode()
        source = {"type": "base64", "media_type": "image/png", "data": data}
        return {"role": "user", "content": [{"type": "text", "text": text}, {"type": "image", "source": source}]}

    def _options(self, tools, thinking, schema):
        options = {"max_tokens": 4000}
        if tools:
            options["tools"] = [{"name": "weather", "description": "The weather", "input_schema": PARAMETERS}]
        if thinking:
            options["thinking"] = {"type": "enabled", "budget_tokens": 1024}
        if schema:
            # Older SDKs do not know the field, so it goes in as an application would put it there.
            options["extra_body"] = {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}
        return options

    def _said(self, reply):
        blocks = reply.content
        return Said(
            text="".join(block.text for block in blocks if block.type == "text"),
            calls=[(block.id, block.name, block.input) for block in blocks if block.type == "tool_use"],
            thought=any(block.type in ("thinking", "redacted_thinking") for block in blocks),
            usage=(reply.usage.input_tokens, reply.usage.output_tokens),
            turn=[{"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in blocks]}],
        )

    def ask(self, model, turns, *, tools=False, thinking=False, schema=False):
        return self._said(self.client.messages.create(model=model, messages=turns, **self._options(tools, thinking, schema)))

    def results(self, said):
        results = [{"type": "tool_result", "tool_use_id": call[0], "content": "sunny"} for call in said.calls]
        return [{"role": "user", "content": results}]

    def stream(self, model, text, *, tools=False, thinking=False):
        options = self._options(tools, thinking, False)
        with self.client.messages.stream(model=model, messages=[self.user(text)], **options) as stream:
            pieces = list(stream.text_stream)
            said = self._said(stream.get_final_message())
        assert "".join(pieces) == said.text
        return said

    def leave(self, model, text):
        with self.client.messages.stream(model=model, messages=[self.user(text)], max_tokens=4000) as stream:
            next(iter(stream.text_stream))


class Responses:
    """openai, Responses."""

    errors = openai.APIStatusError
    # The helper knows one end only, and says so in a class that is not its own.
    stream_error = RuntimeError

    def __init__(self, house, **options):
        options = dict(api_key=house.key, base_url=house.base_url + "/v1", max_retries=0, timeout=30) | options
        self.client = openai.OpenAI(**options, _strict_response_validation=True)

    def user(self, text, picture=None):
        parts = [{"type": "input_text", "text": text}]
        if picture is not None:
            url = "data:image/png;base64," + base64.b64encode(picture).decode()
            parts.append({"type": "input_image", "image_url": url, "detail": "auto"})
        return {"role": "user", "content": parts}

    def _options(self, tools, thinking, schema):
        options = {"store": False}
        if tools:
            tool = {"type": "function", "name": "weather", "description": "The weather", "parameters": PARAMETERS, "strict": False}
            options["tools"] = [tool]
        if thinking:
            options |= {"reasoning": {"effort": "high", "summary": "auto"}, "include": ["reasoning.encrypted_content"]}
        if schema:
            options["text"] = {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "strict": True}}
        return options

    def _said(self, reply):
        return Said(
            text=reply.output_text,
            calls=[(item.call_id, item.name, json.loads(item.arguments)) for item in reply.output if item.type == "function_call"],
            thought=any(item.type == "reasoning" for item in reply.output),
            usage=(reply.usage.input_tokens, reply.usage.output_tokens),
            turn=[item.model_dump(exclude_none=True) for item in reply.output],
        )

    def ask(self, model, turns, *, tools=False, thinking=False, schema=False):
        return self._said(self.client.responses.create(model=model, input=turns, **self._options(tools, thinking, schema)))

    def results(self, said):
        return [{"type": "function_call_output", "call_id": call[0], "output": "sunny"} for call in said.calls]

    def stream(self, model, text, *, tools=False, thinking=False):
        with self.client.responses.stream(model=model, input=[self.user(text)], **self._options(tools, thinking, False)) as stream:
            pieces = [event.delta for event in stream if event.type == "response.output_text.delta"]
            said = self._said(stream.get_final_response())
        assert "".join(pieces) == said.text
        return said

    def leave(self, model, text):
        raw = self.client.responses.with_raw_response.create(model=model, input=[self.user(text)], stream=True, store=False)
        stream = raw.parse()
        for event in stream:
            if event.type == "response.output_text.delta":
                break
        stream.close()


class Google:
    """google-genai."""

    errors = google_errors.APIError
    stream_error = google_errors.APIError

    def __init__(self, house, key=None):
        options = types.HttpOptions(base_url=house.base_url, timeout=30_000)
        self.client = genai.Client(api_key=key or house.key, http_options=options)

    def user(self, text, picture=None):
        parts = [types.Part(text=text)]
        if picture is not None:
            parts.append(types.Part(inline_data=types.Blob(data=picture, mime_type="image/png")))
        return types.Content(role="user", parts=parts)

    def _config(self, tools, thinking, schema):
        options = {}
        if tools:
            function = types.FunctionDeclaration(name="weather", description="The weather", parameters_json_schema=PARAMETERS)
            options["tools"] = [types.Tool(function_declarations=[function])]
        if thinking:
            options["thinking_config"] = types.ThinkingConfig(include_thoughts=True)
        if schema:
            options |= {"response_mime_type": "application/json", "response_json_schema": SCHEMA}
        return types.GenerateContentConfig(**options)

    def _said(self, replies):
        parts = [part for reply in replies for part in (reply.candidates or [None])[0].content.parts or [] if reply.candidates]
        calls = [part.function_call for part in parts if part.function_call]
        usage = replies[-1].usage_metadata
        output = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
        return Said(
            text="".join(part.text for part in parts if part.text and not part.thought),
            calls=[(call.id, call.name, call.args) for call in calls],
            thought=any(part.thought or part.thought_signature for part in parts),
            usage=(usage.prompt_token_count, output),
            turn=[types.Content(role="model", parts=parts)],
        )

    def ask(self, model, turns, *, tools=False, thinking=False, schema=False):
        config = self._config(tools, thinking, schema)
        return self._said([self.client.models.generate_content(model=model, contents=turns, config=config)])

    def results(self, said):
        def part(call):
            return types.Part(function_response=types.FunctionResponse(id=call[0], name=call[1], response={"output": "sunny"}))

        return [types.Content(role="user", parts=[part(call) for call in said.calls])]

    def stream(self, model, text, *, tools=False, thinking=False):
        config = self._config(tools, thinking, False)
        chunks = list(self.client.models.generate_content_stream(model=model, contents=[self.user(text)], config=config))
        return self._said([chunk for chunk in chunks if chunk.candidates and chunk.candidates[0].content] or chunks)

    def leave(self, model, text):
        stream = self.client.models.generate_content_stream(model=model, contents=[self.user(text)])
        next(stream)
        stream.close()


CLIENTS = (Chat, Messages, Responses, Google)
