// Pictures as the official npm SDK and Vercel's make and change them.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { experimental_generateImage, generateImage as newer } from 'ai';
import { toFile } from 'openai';
import { House } from './house.js';
import { isPng, PIXEL } from './media.js';

const generateImage = newer ?? experimental_generateImage;
const EACH = 40_000_000; // demo-image, nano-USD a picture

let house;
let client;
before(async () => {
  house = await House.start();
  client = house.client();
});
after(() => house?.stop());

async function charged(promise) {
  const { data, response } = await promise.withResponse();
  const row = await house.usage(response.headers.get('x-request-id'));
  return [data, row.charge_nano_usd];
}

test('a picture, with a format and without', async () => {
  for (const more of [{}, { response_format: 'b64_json' }]) {
    const [result, charge] = await charged(client.images.generate({ model: 'demo-image', prompt: 'a gate', ...more }));
    assert.ok(isPng(result.data[0].b64_json));
    assert.equal(result.data[0].url, '');
    assert.equal(charge, EACH);
  }
});

test('edits of one and several pictures with a mask', async () => {
  const file = (name) => toFile(PIXEL, name, { type: 'image/png' });
  for (const count of [1, 3]) {
    const all = await Promise.all(Array.from({ length: count }, (_, at) => file(`${at}.png`)));
    const image = count === 1 ? all[0] : all;
    const mask = await file('mask.png');
    const [result, charge] = await charged(client.images.edit({ model: 'demo-image', prompt: 'brighter', image, mask }));
    assert.ok(isPng(result.data[0].b64_json));
    assert.equal(charge, EACH);
  }
});

test('a stream with previews', async () => {
  const stream = await client.images.generate({ model: 'demo-image', prompt: 'a gate', stream: true, partial_images: 1 });
  const kinds = [];
  for await (const event of stream) kinds.push(event.type);
  assert.deepEqual(kinds, ['image_generation.partial_image', 'image_generation.completed']);
});

test("Vercel's generateImage gets pictures that are not empty", async () => {
  const options = { baseURL: `${house.baseUrl}/v1`, apiKey: house.key };
  const providers = [
    createOpenAI(options).image('demo-image'),
    createOpenAICompatible({ name: 'tollgate', ...options }).imageModel('demo-image'),
  ];
  for (const model of providers) {
    const { images } = await generateImage({ model, prompt: 'two gates', n: 2 });
    assert.equal(images.length, 2);
    for (const image of images) assert.ok(image.uint8Array.length > 50 && isPng(image.base64));
  }
});
