// Embeddings by the official npm SDKs and Vercel's `ai`: the same vectors, whichever form they travel in.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { GoogleGenAI } from '@google/genai';
import { embed, embedMany } from 'ai';
import { House } from './house.js';

const MODELS = ['demo-embedding', 'gemini-embedding-demo'];
const TEXTS = ['the gate opens', 'for every coin'];
const round = (vector) => Array.from(vector, (one) => Math.round(one * 1000));

let house;
before(async () => {
  house = await House.start();
});
after(() => house?.stop());

for (const model of MODELS) {
  test(`the default and lists of numbers are the same: ${model}`, async () => {
    const client = house.client();
    const packed = await client.embeddings.create({ model, input: TEXTS });
    const plain = await client.embeddings.create({ model, input: TEXTS, encoding_format: 'float' });
    assert.deepEqual(packed.data.map((one) => round(one.embedding)), plain.data.map((one) => round(one.embedding)));
    assert.equal(packed.data[1].embedding.length, 8);
    assert.equal(packed.model, model);
  });

  test(`ai: embed and embedMany: ${model}`, async () => {
    const openai = createOpenAI({ apiKey: house.key, baseURL: `${house.baseUrl}/v1` });
    const one = await embed({ model: openai.embedding(model), value: TEXTS[0] });
    const many = await embedMany({ model: openai.embedding(model), values: TEXTS });
    assert.deepEqual(round(one.embedding), round(many.embeddings[0]));
    assert.equal(many.embeddings.length, 2);
    assert.ok(many.usage.tokens > 0);
  });

  test(`google: embedContent: ${model}`, async () => {
    const google = new GoogleGenAI({ apiKey: house.key, httpOptions: { baseUrl: house.baseUrl } });
    const reply = await google.models.embedContent({ model, contents: TEXTS, config: { outputDimensionality: 4 } });
    assert.deepEqual(reply.embeddings.map((one) => one.values.length), [4, 4]);
  });
}
