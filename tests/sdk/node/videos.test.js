// Videos as the official npm SDK makes them: create, poll, download, list, delete, with a file and without.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { House } from './house.js';

const SECOND = 100_000_000; // sora-2, nano-USD a second
// A grey PNG of 720 x 1280 pixels would be long; the maker reads its header only.
const header = Buffer.from('89504e470d0a1a0a0000000d49484452000002d0000005000800000000', 'hex');

let house;
let client;
before(async () => {
  house = await House.start();
  client = house.client();
});
after(() => house?.stop());

async function finished(id) {
  for (let look = 0; look < 300; look += 1) {
    const video = await client.videos.retrieve(id);
    if (video.status === 'completed' || video.status === 'failed') return video;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${id} does not end`);
}

async function made(body) {
  const begun = await client.videos.create(body);
  assert.equal(begun.status, 'queued');
  assert.equal(begun.progress, 0);
  const video = await finished(begun.id);
  assert.equal(video.status, 'completed', JSON.stringify(video));
  const row = await house.usage(video.id.replace('task_', 'call_'));
  return [video, row.charge_nano_usd];
}

test('a video from a text', async () => {
  const [video, charge] = await made({ model: 'sora-2', prompt: 'A gate opens.', seconds: '8', size: '1280x720' });
  assert.equal(video.seconds, '8');
  assert.equal(charge, 8 * SECOND);
  const file = Buffer.from(await (await client.videos.downloadContent(video.id)).arrayBuffer());
  assert.equal(file.subarray(4, 8).toString(), 'ftyp');
  assert.match(video.metadata.url, /Expires=/);
});

test('a video from a picture', async () => {
  const picture = await toFile(header, 'first.png', { type: 'image/png' });
  const [, charge] = await made({ model: 'sora-2', prompt: 'It moves.', input_reference: picture });
  assert.equal(charge, 4 * SECOND);
});

test('nested fields of other makers', async () => {
  const body = { model: 'kling-v3-omni', prompt: 'A gate.', metadata: { aspect_ratio: '1:1', mode: 'std', duration: '3' } };
  const [video, charge] = await made(body);
  assert.equal(video.effective.mode, 'std');
  assert.equal(charge, 3 * 83_400_000);
});

test('what may have begun is not sent again by the SDK itself', async () => {
  const retrying = new OpenAI({ apiKey: house.key, baseURL: `${house.baseUrl}/v1` });
  assert.ok(retrying.maxRetries > 0);
  const mark = await house.mark();
  const body = { model: 'sora-2', prompt: `[[sim:broken_once]] ${Date.now()}` };
  await assert.rejects(retrying.videos.create(body), (error) => error.status === 502 && error.code === 'upstream_error');
  const creations = (await house.received(mark)).filter((one) => one.method === 'POST');
  assert.equal(creations.length, 1);
});

test('list and delete', async () => {
  const [video] = await made({ model: 'sora-2', prompt: 'Soon gone.' });
  const seen = [];
  for await (const one of client.videos.list({ limit: 2 })) seen.push(one.id);
  assert.equal(seen[0], video.id);
  assert.equal((await client.videos.delete(video.id)).deleted, true);
  await assert.rejects(client.videos.retrieve(video.id), OpenAI.NotFoundError);
});
