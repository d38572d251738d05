// System One by TypeSafe's own SDK for JavaScript. It sends plain JSON; packed bodies and pictures are what its Python sibling sends.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { BadRequestError, choice, noul, score, TypeSafeClient } from '@typesafe-ai/sdk';
import { House } from './house.js';

let house;
let client;
before(async () => {
  house = await House.start();
  client = new TypeSafeClient({ apiKey: house.key, baseURL: house.baseUrl, defaultModel: 'demo-decision', retry: { maxRetries: 0 } });
});
after(() => house?.stop());

test('all kinds of questions, short and long', async () => {
  for (const state of ['I was charged twice.', { text: 'word '.repeat(1000) }]) {
    const questions = {
      billing: noul('Is this about billing?'),
      tone: choice('Which tone?', { angry: 'loud', calm: null }),
      level: score('How bad?', ['low', 'high']),
    };
    const { answers, usage } = await client.systemOne({ state, questions });
    assert.deepEqual([answers.billing.noul, answers.tone.choice, answers.level.legend['1']], [0.75, 'angry', 'high']);
    assert.ok(usage.input_tokens > 0);
  }
});

test('its list of models', async () => {
  const models = await client.models.list();
  assert.ok(models.some((one) => one.name === 'demo-decision'));
});

test('a refusal', async () => {
  const asked = client.systemOne({ state: 'x', questions: { a: noul('?') }, model: 'no-such-model' });
  await assert.rejects(asked, (error) => error.status === 404 && /no-such-model/.test(error.message));
  const wrong = client.systemOne({ state: '', questions: { a: { type: 'noul' } } });
  await assert.rejects(wrong, (error) => error instanceof BadRequestError);
});
