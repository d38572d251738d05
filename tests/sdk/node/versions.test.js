// Every endpoint beyond chat with the oldest and the newest version of the official npm SDK, and the one between.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import * as between from 'openai';
import * as newest from 'openai-newest';
import * as oldest from 'openai-oldest';
import { House } from './house.js';
import { FORMATS, isPng, milliseconds, PIXEL, SPOKEN, wav } from './media.js';

let house;
before(async () => {
  house = await House.start();
});
after(() => house?.stop());

async function charged(promise) {
  const { data, response } = await promise.withResponse();
  const row = await house.usage(response.headers.get('x-request-id'));
  return [data, row.charge_nano_usd];
}

for (const [name, sdk] of Object.entries({ oldest, between, newest })) {
  const client = () => new sdk.default({ apiKey: house.key, baseURL: `${house.baseUrl}/v1`, maxRetries: 0, timeout: 30_000 });
  const file = (bytes, name, type) => sdk.toFile(bytes, name, { type });

  describe(`openai, the ${name}`, () => {
    test('pictures', async () => {
      const [made, charge] = await charged(client().images.generate({ model: 'demo-image', prompt: 'two gates', n: 2 }));
      assert.deepEqual([made.data.length, charge], [2, 80_000_000]);
      assert.ok(made.data.every((one) => isPng(one.b64_json)));
    });

    test('changed pictures', async () => {
      for (const count of [1, 2]) {
        const all = await Promise.all(Array.from({ length: count }, (_, at) => file(PIXEL, `${at}.png`, 'image/png')));
        const asked = { model: 'demo-image', prompt: 'brighter', image: count === 1 ? all[0] : all };
        const [changed, charge] = await charged(client().images.edit(asked));
        assert.deepEqual([isPng(changed.data[0].b64_json), charge], [true, 40_000_000]);
      }
    });

    for (const [form, type] of Object.entries(FORMATS)) {
      test(`speech as ${form}`, async () => {
        const reply = await client().audio.speech.create({ model: 'demo-speech', voice: 'alloy', input: SPOKEN, response_format: form });
        assert.equal(reply.headers.get('content-type'), type);
        const bytes = Buffer.from(await reply.arrayBuffer());
        assert.ok(Math.abs((await milliseconds(bytes, form)) - 2500) <= 50);
        const row = await house.usage(reply.headers.get('x-request-id'));
        assert.equal(row.charge_nano_usd, SPOKEN.length * 15_000);
      });
    }

    test('a transcript', async () => {
      const asked = { model: 'demo-whisper', file: await file(wav(2.001), 'speech.wav', 'audio/wav'), response_format: 'verbose_json' };
      const [heard, charge] = await charged(client().audio.transcriptions.create(asked));
      assert.deepEqual([heard.text, charge], [`sim heard ${wav(2.001).length} bytes`, 300_000]);
    });

    test('a translation', async () => {
      const asked = { model: 'demo-whisper', file: await file(wav(0.2), 'speech.wav', 'audio/wav') };
      const [heard, charge] = await charged(client().audio.translations.create(asked));
      assert.match(heard.text, /^sim heard/);
      assert.equal(charge, 100_000);
    });

    test('vectors', async () => {
      const asked = { model: 'demo-embedding', input: ['the gate opens', 'for every coin'], encoding_format: 'float' };
      const made = await client().embeddings.create(asked);
      assert.deepEqual(made.data.map((one) => one.embedding.length), [8, 8]);
    });

    test('what has no method: rerank and a song', async () => {
      const order = await client().post('/rerank', { body: { model: 'demo-rerank', query: 'red', documents: ['green', 'red'] } });
      assert.equal(order.results[0].index, 1);
      const song = await client().post('/music/generations', { body: { model: 'music-2.0', prompt: 'a march', lyrics: 'la la' } });
      assert.equal(song.data.length, 1);
    });
  });
}

test('decisions with the newest', async () => {
  const client = new newest.default({ apiKey: house.key, baseURL: `${house.baseUrl}/v1`, maxRetries: 0 });
  assert.ok(client.decisions, 'this version has them');
  const questions = [{ type: 'predicate', name: 'billing', instructions: 'Is this about billing?' }];
  const reply = await client.decisions.create({ model: 'demo-decision', input: 'I was charged twice.', questions });
  assert.deepEqual([reply.answers[0].name, reply.answers[0].probability], ['billing', 0.75]);
});
