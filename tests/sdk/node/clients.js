// The official SDKs behind one face, so that a test can ask the same of each: plain, streamed, tools, thoughts, pictures, schemas,
// errors, leaving. Each goes through the strictest helper its SDK has, and sends an answer back as an application would.

import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai';

export const MODELS = ['gemini-demo-openai', 'gemini-demo-anthropic', 'gemini-demo-responses', 'gemini-demo-gemini'];
export const WORDS = 'the gate opens for every coin';
export const SAY = 'Say it. [[sim:tokens=6]]';
export const TOOLS = 'Weather? [[sim:tools calls=2]]';
export const THINK = 'Think. [[sim:reasoning_tools calls=2]]';
export const CUT = '[[sim:cut_midstream after=2 cut=eof]]';
export const LONG = '[[sim:tokens=200 delay_ms=50]]';
export const PARAMETERS = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
export const SCHEMA = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false };
export const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const user = (content) => ({ role: 'user', content });
// What the helpers of streams have parsed is not for sending back.
const unparsed = (value) => JSON.parse(JSON.stringify(value), (key, inner) => (key.startsWith('parsed') ? undefined : inner));

/** chat completions */
class Chat {
  constructor(house) {
    this.api = house.client().chat.completions;
  }
  async plain(model, content) {
    const reply = await this.api.create({ model, messages: [user(content)] });
    return [reply.choices[0].message.content, reply.usage.prompt_tokens, reply.usage.completion_tokens];
  }
  async stream(model, content) {
    const options = { model, messages: [user(content)], stream_options: { include_usage: true } };
    const done = await this.api.stream(options).finalChatCompletion();
    return [done.choices[0].message.content, done.usage.prompt_tokens, done.usage.completion_tokens];
  }
  async tools(model, content, { thinking, streamed } = {}) {
    const tools = [{ type: 'function', function: { name: 'weather', parameters: PARAMETERS } }];
    const options = { model, tools, ...(thinking && { reasoning_effort: 'high' }) };
    const messages = [user(content)];
    const asked = { ...options, messages };
    const reply = streamed ? await this.api.stream(asked).finalChatCompletion() : await this.api.create(asked);
    const message = unparsed(reply.choices[0].message);
    const results = message.tool_calls.map((call) => ({ role: 'tool', tool_call_id: call.id, content: 'sunny' }));
    const end = (await this.api.create({ ...options, messages: [...messages, message, ...results] })).choices[0].message;
    const calls = message.tool_calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]);
    return { calls, thought: Boolean(message.reasoning_content ?? message.reasoning_details), text: end.content };
  }
  async picture(model, text) {
    const image_url = { url: `data:image/png;base64,${PICTURE}` };
    const content = [{ type: 'text', text }, { type: 'image_url', image_url }];
    return (await this.api.create({ model, messages: [user(content)] })).choices[0].message.content;
  }
  async schema(model) {
    const response_format = { type: 'json_schema', json_schema: { name: 'n', schema: SCHEMA, strict: true } };
    const done = await this.api.parse({ model, messages: [user('As JSON.')], response_format });
    return JSON.parse(done.choices[0].message.content);
  }
  fails(model, content) {
    return this.api.create({ model, messages: [user(content)] });
  }
  async leave(model, content) {
    const stream = await this.api.create({ model, messages: [user(content)], stream: true });
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    stream.controller.abort();
  }
}

/** Responses */
class Responses {
  constructor(house) {
    this.api = house.client().responses;
  }
  async plain(model, input) {
    const reply = await this.api.create({ model, input, store: false });
    return [reply.output_text, reply.usage.input_tokens, reply.usage.output_tokens];
  }
  async stream(model, input) {
    const done = await this.api.stream({ model, input, store: false }).finalResponse();
    if (done.status !== 'completed') throw new Error(done.error?.message ?? done.status);
    return [done.output_text, done.usage.input_tokens, done.usage.output_tokens];
  }
  async tools(model, content, { thinking, streamed } = {}) {
    const tools = [{ type: 'function', name: 'weather', parameters: PARAMETERS, strict: false }];
    const reasoning = { reasoning: { effort: 'high', summary: 'auto' }, include: ['reasoning.encrypted_content'] };
    const options = { model, tools, store: false, ...(thinking && reasoning) };
    const input = [user(content)];
    const asked = { ...options, input };
    const reply = streamed ? await this.api.stream(asked).finalResponse() : await this.api.create(asked);
    const output = unparsed(reply.output);
    const called = output.filter((item) => item.type === 'function_call');
    const results = called.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'sunny' }));
    const end = await this.api.create({ ...options, input: [...input, ...output, ...results] });
    const calls = called.map((item) => [item.name, JSON.parse(item.arguments)]);
    return { calls, thought: output.some((item) => item.type === 'reasoning'), text: end.output_text };
  }
  async picture(model, text) {
    const image = { type: 'input_image', image_url: `data:image/png;base64,${PICTURE}`, detail: 'auto' };
    const content = [{ type: 'input_text', text }, image];
    return (await this.api.create({ model, input: [user(content)], store: false })).output_text;
  }
  async schema(model) {
    const format = { type: 'json_schema', name: 'n', schema: SCHEMA, strict: true };
    const done = await this.api.parse({ model, input: 'As JSON.', text: { format }, store: false });
    return JSON.parse(done.output_text);
  }
  fails(model, input) {
    return this.api.create({ model, input, store: false });
  }
  async leave(model, input) {
    const stream = await this.api.create({ model, input, store: false, stream: true });
    for await (const event of stream) if (event.type === 'response.output_text.delta') break;
    stream.controller.abort();
  }
}

/** Anthropic's messages */
class Messages {
  constructor(house) {
    const options = { apiKey: house.key, baseURL: house.baseUrl, maxRetries: 0, timeout: 30_000 };
    this.api = new Anthropic(options).messages;
  }
  async plain(model, content) {
    const reply = await this.api.create({ model, max_tokens: 1000, messages: [user(content)] });
    return [reply.content[0].text, reply.usage.input_tokens, reply.usage.output_tokens];
  }
  async stream(model, content) {
    const done = await this.api.stream({ model, max_tokens: 1000, messages: [user(content)] }).finalMessage();
    return [done.content[0].text, done.usage.input_tokens, done.usage.output_tokens];
  }
  async tools(model, text, { thinking, streamed } = {}) {
    const tools = [{ name: 'weather', input_schema: PARAMETERS }];
    const options = { model, tools, max_tokens: 4000, ...(thinking && { thinking: { type: 'enabled', budget_tokens: 1024 } }) };
    const messages = [user(text)];
    const asked = { ...options, messages };
    const reply = streamed ? await this.api.stream(asked).finalMessage() : await this.api.create(asked);
    const content = unparsed(reply.content);
    const called = content.filter((block) => block.type === 'tool_use');
    const results = called.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'sunny' }));
    const end = await this.api.create({ ...options, messages: [...messages, { role: 'assistant', content }, user(results)] });
    const said = end.content.filter((block) => block.type === 'text').map((block) => block.text);
    const thought = content.some((block) => block.type === 'thinking' || block.type === 'redacted_thinking');
    return { calls: called.map((block) => [block.name, block.input]), thought, text: said.join('') };
  }
  async picture(model, text) {
    const source = { type: 'base64', media_type: 'image/png', data: PICTURE };
    const content = [{ type: 'text', text }, { type: 'image', source }];
    return (await this.api.create({ model, max_tokens: 1000, messages: [user(content)] })).content[0].text;
  }
  async schema(model) {
    const output_config = { format: { type: 'json_schema', schema: SCHEMA } };
    const done = await this.api.create({ model, max_tokens: 1000, messages: [user('As JSON.')], output_config });
    return JSON.parse(done.content[0].text);
  }
  fails(model, content) {
    return this.api.create({ model, max_tokens: 1000, messages: [user(content)] });
  }
  async leave(model, content) {
    const stream = await this.api.create({ model, max_tokens: 1000, messages: [user(content)], stream: true });
    for await (const event of stream) if (event.type === 'content_block_delta') break;
    stream.controller.abort();
  }
}

/** Gemini */
class Google {
  constructor(house) {
    this.api = new GoogleGenAI({ apiKey: house.key, httpOptions: { baseUrl: house.baseUrl } }).models;
  }
  async plain(model, contents) {
    const reply = await this.api.generateContent({ model, contents });
    return [reply.text, reply.usageMetadata.promptTokenCount, reply.usageMetadata.candidatesTokenCount];
  }
  async stream(model, contents) {
    let [text, usage, finish] = [''];
    for await (const chunk of await this.api.generateContentStream({ model, contents })) {
      text += chunk.text ?? '';
      usage = chunk.usageMetadata ?? usage;
      finish = chunk.candidates?.[0]?.finishReason ?? finish;
    }
    // This SDK takes any end for a good one; the gateway's error event makes it throw before.
    assert.ok(finish, 'the reason of the stop');
    return [text, usage.promptTokenCount, usage.candidatesTokenCount];
  }
  async tools(model, text, { thinking, streamed } = {}) {
    const tools = [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: PARAMETERS }] }];
    const config = { tools, ...(thinking && { thinkingConfig: { includeThoughts: true } }) };
    const contents = [{ role: 'user', parts: [{ text }] }];
    const asked = { model, contents, config };
    const said = [];
    const replies = streamed ? await this.api.generateContentStream(asked) : [await this.api.generateContent(asked)];
    for await (const reply of replies) said.push(...(reply.candidates[0].content?.parts ?? []));
    const content = { role: 'model', parts: said };
    const called = said.filter((part) => part.functionCall).map((part) => part.functionCall);
    const parts = called.map(({ id, name }) => ({ functionResponse: { id, name, response: { output: 'sunny' } } }));
    const end = await this.api.generateContent({ model, contents: [...contents, content, { role: 'user', parts }], config });
    const thought = said.some((part) => part.thought || part.thoughtSignature);
    return { calls: called.map(({ name, args }) => [name, args]), thought, text: end.text };
  }
  async picture(model, text) {
    const parts = [{ text }, { inlineData: { mimeType: 'image/png', data: PICTURE } }];
    return (await this.api.generateContent({ model, contents: [{ role: 'user', parts }] })).text;
  }
  async schema(model) {
    const config = { responseMimeType: 'application/json', responseJsonSchema: SCHEMA };
    return JSON.parse((await this.api.generateContent({ model, contents: 'As JSON.', config })).text);
  }
  fails(model, contents) {
    return this.api.generateContent({ model, contents });
  }
  async leave(model, contents) {
    const controller = new AbortController();
    const config = { abortSignal: controller.signal };
    const stream = await this.api.generateContentStream({ model, contents, config });
    await stream.next();
    controller.abort();
    // The SDK ends or throws, by version; either is an end.
    await stream.next().catch(() => {});
  }
}

export const SDKS = { 'openai chat': Chat, 'openai responses': Responses, anthropic: Messages, google: Google };
