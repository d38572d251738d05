// The official npm SDKs, each against a provider of every dialect. The models differ only in what their provider speaks, so every
// pair has the same expectations.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CUT, LONG, MODELS, PICTURE, SAY, SDKS, THINK, TOOLS, WORDS } from './clients.js';
import { House } from './house.js';

let house;
before(async () => {
  house = await House.start();
});
after(() => house?.stop());

/** Two calls of a tool, with thoughts or without, then their results; the first answer goes back as its SDK gave it. */
async function twoTurns(sdk, model, content, how) {
  const { calls, thought, text } = await sdk.tools(model, content, how);
  assert.deepEqual([calls, thought], [[['weather', { city: 'Paris' }], ['weather', { city: 'Paris' }]], Boolean(how.thinking)]);
  assert.ok(text);
}

/** What a request gives back to its provider of what that provider sealed. Chat completions seal nothing. */
function seals(model, body) {
  switch (model) {
    case 'gemini-demo-anthropic':
      return body.messages.flatMap(({ content }) => content).filter(({ type }) => type === 'thinking').map(({ signature }) => signature);
    case 'gemini-demo-responses':
      return body.input.filter(({ type }) => type === 'reasoning').map((item) => item.encrypted_content);
    case 'gemini-demo-gemini': {
      const made = Buffer.from('gemini').toString('base64');
      return body.contents.flatMap(({ parts }) => parts).map((part) => part.thoughtSignature).filter((seal) => seal?.startsWith(made));
    }
    default:
      return [];
  }
}

/**
 * Both turns are taken at the first attempt, and the second gives the provider its seal back: it refuses one that is not its own or belongs to
 * something else. The exception is note 2 of the README: there the seal comes back broken, is refused, and the turn goes on without.
 */
async function thoughtsComeBack(sdk, model, how) {
  const mark = await house.mark();
  await twoTurns(sdk, model, THINK, { thinking: true, ...how });
  const seen = await house.received(mark);
  const broken = how.streamed && sdk instanceof SDKS['openai chat'] && model === 'gemini-demo-anthropic';
  assert.deepEqual(seen.map(({ status }) => status), broken ? [200, 400, 200] : [200, 200]);
  assert.equal(seals(model, seen.at(-1).body).length > 0, model !== 'gemini-demo-openai' && !broken, JSON.stringify(seen.at(-1).body));
}

const THINGS = {
  plain: async (sdk, model) => assert.deepEqual(await sdk.plain(model, SAY), [WORDS, 3, 6]),
  stream: async (sdk, model) => assert.deepEqual(await sdk.stream(model, SAY), [WORDS, 3, 6]),
  'parallel tools and the turn with their results': (sdk, model) => twoTurns(sdk, model, TOOLS, {}),
  'streamed tools and the turn with their results': (sdk, model) => twoTurns(sdk, model, TOOLS, { streamed: true }),
  'thoughts survive the second turn': (sdk, model) => thoughtsComeBack(sdk, model, {}),
  'streamed thoughts survive the second turn': (sdk, model) => thoughtsComeBack(sdk, model, { streamed: true }),
  'a picture reaches the provider': async (sdk, model) => {
    const mark = await house.mark();
    assert.equal(await sdk.picture(model, SAY), WORDS);
    const [seen] = await house.received(mark);
    assert.ok(JSON.stringify(seen.body).includes(PICTURE.slice(0, 60)));
  },
  'an answer in a schema': async (sdk, model) => assert.deepEqual(await sdk.schema(model), { n: 7 }),
  'errors have their status': async (sdk, model) => {
    for (const [scenario, status] of [['error400', 400], ['error429', 429], ['error500', 502]]) {
      await assert.rejects(sdk.fails(model, `[[sim:${scenario}]]`), (error) => error.status === status);
    }
  },
  'a broken stream throws': async (sdk, model) => {
    await assert.rejects(sdk.stream(model, CUT));
  },
  'leaving ends the call': async (sdk, model) => {
    await house.left(model, () => sdk.leave(model, LONG));
  },
};

for (const [name, Client] of Object.entries(SDKS)) {
  describe(name, () => {
    for (const model of MODELS) {
      for (const [thing, expect] of Object.entries(THINGS)) {
        test(`${model}: ${thing}`, () => expect(new Client(house), model));
      }
    }
  });
}
