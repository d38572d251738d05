// Four npm SDKs and Vercel's `ai` with its providers, each against a provider of every dialect. The models differ only in
// what their provider speaks, so every pair has the same expectations.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenResponses } from '@ai-sdk/open-responses';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { House } from './house.js';

const MODELS = ['gemini-demo-openai', 'gemini-demo-anthropic', 'gemini-demo-responses', 'gemini-demo-gemini'];
const WORDS = 'the gate opens for every coin';
const SAY = 'Say it. [[sim:tokens=6]]';
const TOOLS = 'Weather? [[sim:tools calls=2]]';
const CUT = '[[sim:cut_midstream after=2 cut=eof]]';
const PARAMETERS = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const SCHEMA = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'], additionalProperties: false };
const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

let house;
before(async () => {
  house = await House.start();
});
after(() => house?.stop());

const openai = () => new OpenAI({ apiKey: house.key, baseURL: `${house.baseUrl}/v1`, maxRetries: 0, timeout: 30_000 });
const claude = () => new Anthropic({ apiKey: house.key, baseURL: house.baseUrl, maxRetries: 0, timeout: 30_000 });
const google = () => new GoogleGenAI({ apiKey: house.key, httpOptions: { baseUrl: house.baseUrl } });

// Each official SDK: a plain call, a stream through its strictest helper, two tools with the turn of their results.
const SDKS = {
  'openai chat': {
    async plain(model) {
      const reply = await openai().chat.completions.create({ model, messages: [{ role: 'user', content: SAY }] });
      return [reply.choices[0].message.content, reply.usage.prompt_tokens, reply.usage.completion_tokens];
    },
    async stream(model, content) {
      const stream = openai().chat.completions.stream({ model, messages: [{ role: 'user', content }], stream_options: { include_usage: true } });
      const done = await stream.finalChatCompletion();
      return [done.choices[0].message.content, done.usage.prompt_tokens, done.usage.completion_tokens];
    },
    async tools(model) {
      const tools = [{ type: 'function', function: { name: 'weather', parameters: PARAMETERS } }];
      const messages = [{ role: 'user', content: TOOLS }];
      const { message } = (await openai().chat.completions.create({ model, messages, tools })).choices[0];
      const results = message.tool_calls.map((call) => ({ role: 'tool', tool_call_id: call.id, content: 'sunny' }));
      const end = await openai().chat.completions.create({ model, messages: [...messages, message, ...results], tools });
      return [message.tool_calls.length, end.choices[0].message.content];
    },
    async picture(model) {
      const image_url = { url: `data:image/png;base64,${PICTURE}` };
      const content = [{ type: 'text', text: SAY }, { type: 'image_url', image_url }];
      return (await openai().chat.completions.create({ model, messages: [{ role: 'user', content }] })).choices[0].message.content;
    },
    fails: (model) => openai().chat.completions.create({ model, messages: [{ role: 'user', content: '[[sim:error400]]' }] }),
  },
  'openai responses': {
    async plain(model) {
      const reply = await openai().responses.create({ model, input: SAY, store: false });
      return [reply.output_text, reply.usage.input_tokens, reply.usage.output_tokens];
    },
    async stream(model, input) {
      const done = await openai().responses.stream({ model, input, store: false }).finalResponse();
      if (done.status !== 'completed') throw new Error(done.error?.message ?? done.status);
      return [done.output_text, done.usage.input_tokens, done.usage.output_tokens];
    },
    async tools(model) {
      const tools = [{ type: 'function', name: 'weather', parameters: PARAMETERS, strict: false }];
      const input = [{ role: 'user', content: TOOLS }];
      const { output } = await openai().responses.create({ model, input, tools, store: false });
      const calls = output.filter((item) => item.type === 'function_call');
      const results = calls.map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'sunny' }));
      const end = await openai().responses.create({ model, input: [...input, ...output, ...results], tools, store: false });
      return [calls.length, end.output_text];
    },
    async picture(model) {
      const image = { type: 'input_image', image_url: `data:image/png;base64,${PICTURE}`, detail: 'auto' };
      const content = [{ type: 'input_text', text: SAY }, image];
      return (await openai().responses.create({ model, input: [{ role: 'user', content }], store: false })).output_text;
    },
    fails: (model) => openai().responses.create({ model, input: '[[sim:error400]]', store: false }),
  },
  anthropic: {
    async plain(model) {
      const reply = await claude().messages.create({ model, max_tokens: 1000, messages: [{ role: 'user', content: SAY }] });
      return [reply.content[0].text, reply.usage.input_tokens, reply.usage.output_tokens];
    },
    async stream(model, content) {
      const done = await claude().messages.stream({ model, max_tokens: 1000, messages: [{ role: 'user', content }] }).finalMessage();
      return [done.content[0].text, done.usage.input_tokens, done.usage.output_tokens];
    },
    async tools(model) {
      const tools = [{ name: 'weather', input_schema: PARAMETERS }];
      const messages = [{ role: 'user', content: TOOLS }];
      const { content } = await claude().messages.stream({ model, max_tokens: 1000, messages, tools }).finalMessage();
      const calls = content.filter((block) => block.type === 'tool_use');
      const results = calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'sunny' }));
      const next = [...messages, { role: 'assistant', content }, { role: 'user', content: results }];
      const end = await claude().messages.create({ model, max_tokens: 1000, messages: next, tools });
      return [calls.length, end.content[0].text];
    },
    async picture(model) {
      const source = { type: 'base64', media_type: 'image/png', data: PICTURE };
      const content = [{ type: 'text', text: SAY }, { type: 'image', source }];
      return (await claude().messages.create({ model, max_tokens: 1000, messages: [{ role: 'user', content }] })).content[0].text;
    },
    fails: (model) => claude().messages.create({ model, max_tokens: 1000, messages: [{ role: 'user', content: '[[sim:error400]]' }] }),
  },
  google: {
    async plain(model) {
      const reply = await google().models.generateContent({ model, contents: SAY });
      return [reply.text, reply.usageMetadata.promptTokenCount, reply.usageMetadata.candidatesTokenCount];
    },
    async stream(model, contents) {
      let text = '';
      let usage;
      let finish;
      for await (const chunk of await google().models.generateContentStream({ model, contents })) {
        text += chunk.text ?? '';
        usage = chunk.usageMetadata ?? usage;
        finish = chunk.candidates?.[0]?.finishReason ?? finish;
      }
      // This SDK takes any end for a good one; the gateway's error event makes it throw before.
      assert.ok(finish, 'the reason of the stop');
      return [text, usage.promptTokenCount, usage.candidatesTokenCount];
    },
    async tools(model) {
      const config = { tools: [{ functionDeclarations: [{ name: 'weather', parametersJsonSchema: PARAMETERS }] }] };
      const contents = [{ role: 'user', parts: [{ text: TOOLS }] }];
      const reply = await google().models.generateContent({ model, contents, config });
      const parts = reply.functionCalls.map(({ id, name }) => ({ functionResponse: { id, name, response: { output: 'sunny' } } }));
      const next = [...contents, reply.candidates[0].content, { role: 'user', parts }];
      return [reply.functionCalls.length, (await google().models.generateContent({ model, contents: next, config })).text];
    },
    async picture(model) {
      const parts = [{ text: SAY }, { inlineData: { mimeType: 'image/png', data: PICTURE } }];
      return (await google().models.generateContent({ model, contents: [{ role: 'user', parts }] })).text;
    },
    fails: (model) => google().models.generateContent({ model, contents: '[[sim:error400]]' }),
  },
};

for (const [name, sdk] of Object.entries(SDKS)) {
  describe(name, () => {
    for (const model of MODELS) {
      test(`${model}: plain, stream, tools, picture, errors`, async () => {
        assert.deepEqual(await sdk.plain(model), [WORDS, 3, 6]);
        assert.deepEqual(await sdk.stream(model, SAY), [WORDS, 3, 6]);
        const [calls, text] = await sdk.tools(model);
        assert.equal(calls, 2);
        assert.ok(text);
        assert.equal(await sdk.picture(model), WORDS);
        await assert.rejects(sdk.fails(model), (error) => error.status === 400);
        await assert.rejects(sdk.stream(model, CUT));
      });
    }
  });
}

// Vercel's `ai` checks every chunk against a schema of its own, for six ways to speak.
const VERCEL = {
  'openai.chat': () => createOpenAI({ apiKey: house.key, baseURL: `${house.baseUrl}/v1` }).chat,
  'openai.responses': () => createOpenAI({ apiKey: house.key, baseURL: `${house.baseUrl}/v1` }).responses,
  anthropic: () => createAnthropic({ apiKey: house.key, baseURL: `${house.baseUrl}/v1` }),
  google: () => createGoogleGenerativeAI({ apiKey: house.key, baseURL: `${house.baseUrl}/v1beta` }),
  compatible: () => createOpenAICompatible({ name: 'tollgate', apiKey: house.key, baseURL: `${house.baseUrl}/v1`, includeUsage: true, supportsStructuredOutputs: true }),
  'open-responses': () => createOpenResponses({ name: 'tollgate', apiKey: house.key, url: `${house.baseUrl}/v1/responses` }),
};

for (const [name, provider] of Object.entries(VERCEL)) {
  describe(`ai with ${name}`, () => {
    for (const id of MODELS) {
      test(`${id}: plain, stream, tools, schema, errors`, async () => {
        const model = provider()(id);
        const options = { model, maxRetries: 0 };
        const plain = await generateText({ ...options, prompt: SAY });
        assert.deepEqual([plain.text, plain.usage.inputTokens, plain.usage.outputTokens], [WORDS, 3, 6]);

        const errors = [];
        const stream = streamText({ ...options, prompt: SAY, onError: ({ error }) => errors.push(error) });
        assert.equal(await stream.text, WORDS);
        assert.deepEqual([errors, await stream.finishReason, (await stream.usage).outputTokens], [[], 'stop', 6]);

        const weather = tool({ description: 'The weather', inputSchema: jsonSchema(PARAMETERS), execute: ({ city }) => `sunny in ${city}` });
        const steps = await generateText({ ...options, prompt: TOOLS, tools: { weather }, stopWhen: stepCountIs(3) });
        assert.deepEqual(steps.steps.map((step) => step.toolCalls.length), [2, 0]);
        assert.ok(steps.text);

        if (name !== 'open-responses') {
          const typed = await generateText({ ...options, prompt: 'As JSON.', output: Output.object({ schema: jsonSchema(SCHEMA) }) });
          assert.deepEqual(typed.output, { n: 7 });
        }
        await assert.rejects(generateText({ ...options, prompt: '[[sim:error400]]' }), (error) => error.statusCode === 400);
      });
    }
  });
}
