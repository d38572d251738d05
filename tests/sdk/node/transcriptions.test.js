// Recordings written down as the official npm SDK and Vercel's `ai` ask for it.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { experimental_transcribe as transcribe } from 'ai';
import { toFile } from 'openai';
import { House } from './house.js';
import { wav } from './media.js';

const SECOND = 100_000; // demo-whisper, nano-USD
const STREAMED = 75_000; // demo-transcribe

let house;
let client;
before(async () => {
  house = await House.start();
  client = house.client();
});
after(() => house?.stop());

const file = (seconds) => toFile(wav(seconds), 'speech.wav', { type: 'audio/wav' });

for (const format of ['json', 'text', 'srt', 'vtt', 'verbose_json']) {
  test(`a transcript as ${format}`, async () => {
    const asked = client.audio.transcriptions.create({ model: 'demo-whisper', file: await file(2.001), response_format: format });
    const { data, response } = await asked.withResponse();
    const text = typeof data === 'string' ? data : data.text;
    assert.ok(text.includes(`sim heard ${wav(2.001).length} bytes`), text);
    const row = await house.usage(response.headers.get('x-request-id'));
    assert.equal(row.charge_nano_usd, 3 * SECOND);
  });
}

test('a stream', async () => {
  const asked = client.audio.transcriptions.create({ model: 'demo-transcribe', file: await file(4.2), stream: true });
  const { data: stream, response } = await asked.withResponse();
  let text = '';
  let last;
  for await (const event of stream) {
    if (event.type === 'transcript.text.delta') text += event.delta;
    last = event;
  }
  assert.equal(last.type, 'transcript.text.done');
  assert.equal(text, last.text);
  const row = await house.usage(response.headers.get('x-request-id'));
  assert.equal(row.charge_nano_usd, 5 * STREAMED);
});

test('lists and nested fields', async () => {
  const transcript = await client.audio.transcriptions.create({
    model: 'demo-whisper',
    file: await file(1),
    response_format: 'verbose_json',
    timestamp_granularities: ['word'],
    language: 'en',
    chunking_strategy: 'auto',
  });
  assert.equal(transcript.words[0].word, 'sim');
});

test('a translation', async () => {
  const transcript = await client.audio.translations.create({ model: 'demo-whisper', file: await file(0.2) });
  assert.match(transcript.text, /^sim heard/);
});

test('the AI SDK transcribes', async () => {
  const openai = createOpenAI({ apiKey: house.key, baseURL: `${house.baseUrl}/v1` });
  const transcript = await transcribe({ model: openai.transcription('demo-whisper'), audio: wav(1.5), maxRetries: 0 });
  assert.equal(transcript.text, `sim heard ${wav(1.5).length} bytes`);
});
