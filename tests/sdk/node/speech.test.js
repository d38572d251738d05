// Speech as the official npm SDK and Vercel's `ai` ask for it.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { experimental_generateSpeech as generateSpeech } from 'ai';
import OpenAI from 'openai';
import { House } from './house.js';
import { FORMATS, milliseconds, SPOKEN } from './media.js';

const CHARACTER = 15_000; // demo-speech, nano-USD

let house;
let client;
before(async () => {
  house = await House.start();
  client = house.client();
});
after(() => house?.stop());

for (const [form, type] of Object.entries(FORMATS)) {
  test(`${form} plays, and costs its characters`, async () => {
    const reply = await client.audio.speech.create({ model: 'demo-speech', voice: 'alloy', input: SPOKEN, response_format: form });
    assert.equal(reply.headers.get('content-type'), type);
    const bytes = Buffer.from(await reply.arrayBuffer());
    assert.ok(Math.abs((await milliseconds(bytes, form)) - 2500) <= 50);
    const row = await house.usage(reply.headers.get('x-request-id'));
    assert.deepEqual([row.usage.input, row.usage.audio_output, row.charge_nano_usd], [SPOKEN.length, 50, SPOKEN.length * CHARACTER]);
  });
}

test('pieces come one by one', async () => {
  const reply = await client.audio.speech.create({ model: 'demo-speech', voice: { id: 'echo' }, input: SPOKEN });
  let pieces = 0;
  for await (const piece of reply.body) pieces += piece.length > 0 ? 1 : 0;
  assert.ok(pieces >= 1);
});

test('what may have been made is not asked for again by the SDK itself', async () => {
  const retrying = new OpenAI({ apiKey: house.key, baseURL: `${house.baseUrl}/v1` });
  const mark = await house.mark();
  const body = { model: 'demo-speech', voice: 'alloy', input: '[[sim:error500]]' };
  await assert.rejects(retrying.audio.speech.create(body), (error) => error.status === 502);
  assert.equal((await house.received(mark)).length, 1);
});

test('a refusal of the text is reported', async () => {
  const body = { model: 'demo-speech', voice: 'alloy', input: '[[sim:moderated]]' };
  await assert.rejects(client.audio.speech.create(body), (error) => error.code === 'content_policy_violation');
});

test('generateSpeech of Vercel', async () => {
  const provider = createOpenAI({ apiKey: house.key, baseURL: `${house.baseUrl}/v1` });
  for (const outputFormat of ['mp3', 'wav', 'flac']) {
    const { audio } = await generateSpeech({ model: provider.speech('demo-speech'), text: SPOKEN, voice: 'nova', outputFormat, instructions: 'softly' });
    assert.ok(Math.abs((await milliseconds(audio.uint8Array, outputFormat)) - 2500) <= 50, outputFormat);
    assert.equal(audio.format, outputFormat);
  }
});
