// Realtime sessions as `@openai/agents-realtime` holds them, over a plain socket: text, audio, functions, interruption.
// It reads each event with a schema of its own and says nothing when one does not fit, so `schema` is asked here.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { RealtimeAgent, RealtimeSession, tool } from '@openai/agents-realtime';
import { z } from 'zod';
import { House } from './house.js';

const MODELS = ['demo-realtime', 'gemini-demo-live'];

let house;
before(async () => {
  house = await House.start();
});
after(async () => {
  await settled();
  await house?.stop();
});

/** A session lets its last hold go when it is closed. */
async function settled() {
  for (let tries = 0; tries < 600; tries += 1) {
    const accounts = await house.cli('account', 'list');
    if (accounts.every((one) => !one.trial_held_nano_usd && !one.paid_held_nano_usd)) return;
    await sleep(50);
  }
  assert.fail('a hold stays open');
}

/** A square wave, or silence. */
function pcm(milliseconds, level) {
  const samples = new Int16Array(24 * milliseconds);
  for (let at = 0; at < samples.length; at += 1) samples[at] = Math.floor(at / 40) % 2 ? level : -level;
  return samples.buffer;
}

async function open(model, { tools = [], ...config } = {}) {
  const agent = new RealtimeAgent({ name: 'tolltaker', instructions: config.instructions ?? 'be brief', tools });
  const transcription = model === 'demo-realtime' ? { model: 'demo-transcribe' } : null;
  const audio = { input: { transcription, turnDetection: { type: 'server_vad', silenceDurationMs: 200 } }, output: {} };
  const session = new RealtimeSession(agent, {
    transport: 'websocket', model, config: { outputModalities: config.outputModalities ?? ['audio'], audio },
  });
  const events = [];
  const faults = [];
  const waiting = [];
  session.transport.on('*', (event) => {
    events.push(event);
    for (const one of waiting.filter((one) => one.fits(event))) one.done(event);
  });
  session.on('error', (fault) => faults.push(fault));
  const until = (fits) =>
    Promise.race([
      new Promise((done) => {
        const found = events.find(fits);
        if (found) done(found);
        else waiting.push({ fits, done });
      }),
      sleep(30_000, undefined, { ref: false }).then(() => {
        assert.fail(`not seen in ${JSON.stringify(events.map((one) => one.type))} ${JSON.stringify(faults)}`);
      }),
    ]);
  await session.connect({ apiKey: house.key, url: `${house.baseUrl.replace(/^http/, 'ws')}/v1/realtime?model=${model}` });
  return { session, events, faults, until };
}

for (const model of MODELS) {
  test(`${model}: text is answered`, async () => {
    const { session, events, faults, until } = await open(model, { outputModalities: ['text'] });
    session.sendMessage('hello [[sim:tokens=3]]');
    const done = await until((event) => event.type === 'response.done');
    assert.equal(done.response.status, 'completed');
    const said = events.filter((one) => one.type === 'response.output_text.delta').map((one) => one.delta);
    assert.equal(said.join(''), 'the toll is');
    session.close();
    assert.deepEqual(faults, []);
  });

  test(`${model}: audio goes in and comes out`, async () => {
    const { session, faults, until } = await open(model);
    let heard = 0;
    session.on('audio', ({ data }) => {
      heard += data.byteLength;
    });
    session.sendAudio(pcm(400, 6000));
    session.sendAudio(pcm(800, 0));
    await until((event) => event.type === 'response.done');
    assert.equal(heard, 800 * 48, '800 ms at 24 kHz');
    session.close();
    assert.deepEqual(faults, []);
  });

  test(`${model}: a function is run and its answer used`, async () => {
    const asked = [];
    const weather = tool({
      name: 'weather', description: 'The weather in a city.', parameters: z.object({ city: z.string() }),
      execute: async ({ city }) => {
        asked.push(city);
        return 'sunny';
      },
    });
    const { session, events, faults, until } = await open(model, { tools: [weather], outputModalities: ['text'] });
    session.sendMessage('what is it like? [[sim:tool]]');
    await until((event) => event.type === 'response.done' && event.response.output.some((item) => item.type === 'message'));
    assert.deepEqual(asked, ['Oslo']);
    assert.equal(events.filter((one) => one.type === 'response.done').length, 2);
    session.close();
    assert.deepEqual(faults, []);
  });

  test(`${model}: speaking interrupts`, async () => {
    const { session, until } = await open(model, { instructions: '[[sim:hold after=2]]' });
    let interrupted = 0;
    session.on('audio_interrupted', () => {
      interrupted += 1;
    });
    session.sendAudio(pcm(400, 6000));
    session.sendAudio(pcm(800, 0));
    await until((event) => event.type === 'response.output_audio.delta');
    session.sendAudio(pcm(400, 6000));
    const done = await until((event) => event.type === 'response.done');
    assert.equal(done.response.status, 'cancelled');
    assert.ok(interrupted >= 1);
    session.close();
  });
}
