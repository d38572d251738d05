// Vercel's `ai` beyond chat, in the version that most use and in the newest: pictures, speech, transcripts, vectors, rerank, decisions.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createCohere } from '@ai-sdk/cohere';
import { createOpenAI } from '@ai-sdk/openai';
import * as usual from 'ai';
import * as newest from 'ai-newest';
import { createCohere as newestCohere } from 'ai-newest-cohere';
import { createOpenAI as newestOpenAI } from 'ai-newest-openai';
import { House } from './house.js';
import { isPng, milliseconds, PIXEL, SPOKEN, wav } from './media.js';

let house;
before(async () => {
  house = await House.start();
});
after(() => house?.stop());

const options = () => ({ apiKey: house.key, baseURL: `${house.baseUrl}/v1` });
// The names without `experimental` came with the newest.
const VERSIONS = {
  'ai 6': [usual, usual.experimental_generateSpeech, usual.experimental_transcribe, createOpenAI, createCohere],
  'ai 7': [newest, newest.generateSpeech, newest.transcribe, newestOpenAI, newestCohere],
};

for (const [name, [ai, generateSpeech, transcribe, openai, cohere]] of Object.entries(VERSIONS)) {
  describe(name, () => {
    test('generateImage', async () => {
      const { images } = await ai.generateImage({ model: openai(options()).image('demo-image'), prompt: 'two gates', n: 2, maxRetries: 0 });
      assert.equal(images.length, 2);
      for (const image of images) assert.ok(image.uint8Array.length > 50 && isPng(image.base64));
    });

    test('generateImage that changes pictures', async () => {
      const prompt = { text: 'brighter', images: [PIXEL] };
      const { images } = await ai.generateImage({ model: openai(options()).image('demo-image'), prompt, maxRetries: 0 });
      assert.ok(isPng(images[0].base64));
    });

    for (const outputFormat of ['mp3', 'opus', 'aac', 'flac', 'wav']) {
      test(`generateSpeech as ${outputFormat}`, async () => {
        const model = openai(options()).speech('demo-speech');
        const { audio } = await generateSpeech({ model, text: SPOKEN, voice: 'nova', outputFormat, maxRetries: 0 });
        assert.ok(Math.abs((await milliseconds(audio.uint8Array, outputFormat)) - 2500) <= 50);
      });
    }

    test('transcribe', async () => {
      const told = await transcribe({ model: openai(options()).transcription('demo-whisper'), audio: wav(1.5), maxRetries: 0 });
      assert.equal(told.text, `sim heard ${wav(1.5).length} bytes`);
    });

    test('embed', async () => {
      const one = await ai.embed({ model: openai(options()).embedding('demo-embedding'), value: 'the gate opens', maxRetries: 0 });
      assert.equal(one.embedding.length, 8);
    });

    test('rerank', async () => {
      const model = cohere(options()).reranking('demo-rerank');
      const documents = ['a green pear', 'a red apple'];
      const { ranking } = await ai.rerank({ model, documents, query: 'red apple', topN: 1, maxRetries: 0 });
      assert.deepEqual(ranking.map((one) => [one.originalIndex, one.document]), [[1, 'a red apple']]);
    });
  });
}

test('experimental_decide of the newest', async () => {
  const model = newestOpenAI(options()).decisionModel('demo-decision');
  const questions = { tone: { type: 'choice', instructions: 'Which tone?', criteria: { angry: 'loud', calm: null } } };
  const reply = await newest.experimental_decide({ model, state: 'I was charged twice.', questions, maxRetries: 0 });
  assert.equal(reply.answers.tone.choice, 'angry');
});
