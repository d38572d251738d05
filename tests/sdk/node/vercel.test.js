// Vercel's `ai` with its providers, six ways to speak, each against a provider of every dialect. It checks every chunk against a
// schema of its own.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenResponses } from '@ai-sdk/open-responses';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai';
import { CUT, LONG, MODELS, PARAMETERS, PICTURE, SAY, SCHEMA, THINK, TOOLS, WORDS } from './clients.js';
import { House } from './house.js';

let house;
before(async () => {
  house = await House.start();
});
after(() => house?.stop());

const openai = () => createOpenAI({ apiKey: house.key, baseURL: `${house.baseUrl}/v1` });
const compatible = { name: 'tollgate', includeUsage: true, supportsStructuredOutputs: true };
const stateless = { store: false, include: ['reasoning.encrypted_content'] };

// How each is made, and how it is asked to think.
const PROVIDERS = {
  'openai.chat': [() => openai().chat, { openai: { reasoningEffort: 'high', forceReasoning: true } }],
  'openai.responses': [
    () => openai().responses,
    { openai: { reasoningEffort: 'high', reasoningSummary: 'auto', forceReasoning: true, ...stateless } },
  ],
  anthropic: [
    () => createAnthropic({ apiKey: house.key, baseURL: `${house.baseUrl}/v1` }),
    { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } },
  ],
  google: [
    () => createGoogleGenerativeAI({ apiKey: house.key, baseURL: `${house.baseUrl}/v1beta` }),
    { google: { thinkingConfig: { includeThoughts: true } } },
  ],
  compatible: [
    () => createOpenAICompatible({ ...compatible, apiKey: house.key, baseURL: `${house.baseUrl}/v1` }),
    { tollgate: { reasoningEffort: 'high' } },
  ],
  'open-responses': [
    () => createOpenResponses({ name: 'tollgate', apiKey: house.key, url: `${house.baseUrl}/v1/responses` }),
    { tollgate: { reasoningEffort: 'high', reasoningSummary: 'auto' } },
  ],
};

// Where thoughts are not shown by all: chat completions have no way to ask for them, and Responses show as a summary only what is one.
const SHOWN = {
  'openai.chat': [],
  'openai.responses': ['gemini-demo-responses'],
  compatible: ['gemini-demo-openai', 'gemini-demo-anthropic'],
};

const weather = () =>
  tool({ description: 'The weather', inputSchema: jsonSchema(PARAMETERS), execute: ({ city }) => `sunny in ${city}` });

const THINGS = {
  plain: async (options) => {
    const { text, usage } = await generateText({ ...options, prompt: SAY });
    assert.deepEqual([text, usage.inputTokens, usage.outputTokens], [WORDS, 3, 6]);
  },
  stream: async (options) => {
    const errors = [];
    const stream = streamText({ ...options, prompt: SAY, onError: ({ error }) => errors.push(error) });
    assert.equal(await stream.text, WORDS);
    assert.deepEqual([errors, await stream.finishReason, (await stream.usage).outputTokens], [[], 'stop', 6]);
  },
  'parallel tools and the turn with their results': async (options) => {
    const done = await generateText({ ...options, prompt: TOOLS, tools: { weather: weather() }, stopWhen: stepCountIs(3) });
    assert.deepEqual(done.steps.map((step) => step.toolCalls.length), [2, 0]);
    assert.ok(done.text);
  },
  'streamed thoughts survive the second turn': async (options, name, thinking, id) => {
    const errors = [];
    const tools = { weather: weather() };
    const onError = ({ error }) => errors.push(error);
    const done = streamText({ ...options, prompt: THINK, tools, stopWhen: stepCountIs(3), providerOptions: thinking, onError });
    const steps = await done.steps;
    assert.deepEqual([errors, steps.map((step) => step.toolCalls.length)], [[], [2, 0]]);
    assert.ok(await done.text);
    assert.equal(Boolean(steps[0].reasoningText), (SHOWN[name] ?? MODELS).includes(id));
  },
  'a picture reaches the provider': async (options) => {
    const mark = await house.mark();
    const content = [{ type: 'text', text: SAY }, { type: 'image', image: PICTURE, mediaType: 'image/png' }];
    assert.equal((await generateText({ ...options, messages: [{ role: 'user', content }] })).text, WORDS);
    const [seen] = await house.received(mark);
    assert.ok(JSON.stringify(seen.body).includes(PICTURE.slice(0, 60)));
  },
  'an answer in a schema': async (options) => {
    const typed = await generateText({ ...options, prompt: 'As JSON.', output: Output.object({ schema: jsonSchema(SCHEMA) }) });
    assert.deepEqual(typed.output, { n: 7 });
  },
  'errors have their status': async (options) => {
    for (const [scenario, status] of [['error400', 400], ['error429', 429], ['error500', 502]]) {
      await assert.rejects(generateText({ ...options, prompt: `[[sim:${scenario}]]` }), (error) => error.statusCode === status);
    }
  },
  'a broken stream is reported': async (options, name) => {
    const errors = [];
    const stream = streamText({ ...options, prompt: CUT, onError: ({ error }) => errors.push(error) });
    await stream.consumeStream();
    // One of the six only says that it did not end well.
    assert.deepEqual([errors.length, await stream.finishReason], [name === 'open-responses' ? 0 : 1, 'error']);
  },
  'leaving ends the call': async (options, name, thinking, id) => {
    await house.left(id, async () => {
      const controller = new AbortController();
      const stream = streamText({ ...options, prompt: LONG, abortSignal: controller.signal, onError: () => {} });
      for await (const _ of stream.textStream) break;
      controller.abort();
    });
  },
};

for (const [name, [provider, thinking]] of Object.entries(PROVIDERS)) {
  describe(`ai with ${name}`, () => {
    for (const id of MODELS) {
      for (const [thing, expect] of Object.entries(THINGS)) {
        test(`${id}: ${thing}`, () => expect({ model: provider()(id), maxRetries: 0 }, name, thinking, id));
      }
    }
  });
}
