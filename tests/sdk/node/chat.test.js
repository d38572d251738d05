// The official npm SDK against the real executable: plain, streamed, tools, errors, and what each of them cost.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import OpenAI from 'openai';
import { House } from './house.js';

const TWELVE = 'the gate opens for every coin and counts each one with care';
const ask = (content = 'Hello there, gate!', model = 'tollgate-demo') => ({ model, messages: [{ role: 'user', content }] });
// Paid price of tollgate-demo in nano-USD per token: 2.70 and 13.50 USD per million.
const demo = (input, output) => input * 2_700 + output * 13_500;
// demo-tools: 1 and 4 USD per million.
const tools = (input, output) => input * 1_000 + output * 4_000;

let house;
let client;
before(async () => {
  house = await House.start();
  client = house.client();
});
after(() => house?.stop());

/** Runs `work`, which returns a call id, and checks usage row and balance to the nano-USD. */
async function charged(expected, counters, work) {
  const earlier = await house.balance();
  const callId = await work();
  const row = await house.usage(callId);
  const used = Object.fromEntries(Object.entries(row.usage).filter(([, count]) => count));
  if (counters) assert.deepEqual(used, counters);
  const nano = typeof expected === 'function' ? expected(row.usage.input, row.usage.output) : expected;
  assert.equal(row.charge_nano_usd, nano);
  assert.equal(earlier - (await house.balance()), nano);
  return row;
}

test('a plain call', async () => {
  const row = await charged(demo(3, 12), { input: 3, output: 12 }, async () => {
    const { data, response, request_id } = await client.chat.completions.create(ask()).withResponse();
    assert.equal(data.choices[0].message.content, TWELVE);
    assert.equal(data.choices[0].finish_reason, 'stop');
    assert.equal(data.model, 'tollgate-demo');
    assert.deepEqual([data.usage.prompt_tokens, data.usage.completion_tokens, data.usage.total_tokens], [3, 12, 15]);
    assert.match(request_id, /^call_/);
    assert.equal(data._request_id, request_id);
    assert.equal(response.headers.get('x-tollgate-charge-usd'), '0.0001701');
    return request_id;
  });
  assert.equal(row.ending, 'answered');
  assert.equal(row.estimated, false);
});

test('a stream, with and without usage', async () => {
  for (const include_usage of [undefined, false, true]) {
    await charged(demo(1, 5), { input: 1, output: 5 }, async () => {
      const more = include_usage === undefined ? {} : { stream_options: { include_usage } };
      const request = { ...ask('[[sim:tokens=5]]'), stream: true, ...more };
      const { data: stream, request_id } = await client.chat.completions.create(request).withResponse();
      let text = '';
      let usage = null;
      const finishes = [];
      const ids = new Set();
      for await (const chunk of stream) {
        ids.add(`${chunk.id} ${chunk.created} ${chunk.model}`);
        text += chunk.choices[0]?.delta.content ?? '';
        if (chunk.choices[0]?.finish_reason) finishes.push(chunk.choices[0].finish_reason);
        if (chunk.usage) usage = chunk.usage;
        else assert.equal(chunk.choices.length, 1);
      }
      assert.equal(text, 'the gate opens for every');
      assert.deepEqual(finishes, ['stop']);
      assert.equal(ids.size, 1);
      assert.equal(usage?.completion_tokens, include_usage ? 5 : undefined);
      return request_id;
    });
  }
});

test('the streaming helper accumulates', async () => {
  const runner = client.chat.completions.stream({ ...ask('[[sim:tokens=20]]'), stream_options: { include_usage: true } });
  let deltas = '';
  runner.on('content', (delta, snapshot) => {
    deltas += delta;
    assert.equal(snapshot, deltas);
  });
  const final = await runner.finalChatCompletion();
  assert.equal(final.choices[0].message.content, deltas);
  assert.equal(deltas.split(' ').length, 20);
  assert.equal(final.usage.completion_tokens, 20);
});

const weather = {
  type: 'function',
  function: {
    name: 'get_weather',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false },
    strict: true,
  },
};
const clock = {
  type: 'function',
  function: {
    name: 'get_time',
    parameters: { type: 'object', properties: { zone: { enum: ['UTC'] } }, required: ['zone'], additionalProperties: false },
    strict: true,
  },
};
const toolAsk = { ...ask('Weather and time?', 'demo-tools'), tools: [weather, clock] };
const read = (calls) => Object.fromEntries(calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]));
const expectedCalls = { get_weather: { city: 'Paris' }, get_time: { zone: 'UTC' } };

test('two tool calls, then the turn with their results', async () => {
  let message;
  await charged(tools(3, 4), { input: 3, output: 4 }, async () => {
    const { data, request_id } = await client.chat.completions.create(toolAsk).withResponse();
    message = data.choices[0].message;
    assert.equal(data.choices[0].finish_reason, 'tool_calls');
    assert.equal(message.content, null);
    assert.deepEqual(read(message.tool_calls), expectedCalls);
    return request_id;
  });
  const results = message.tool_calls.map((call) => ({ role: 'tool', tool_call_id: call.id, content: 'fine' }));
  await charged(tools(5, 12), { input: 5, output: 12 }, async () => {
    const messages = [...toolAsk.messages, message, ...results];
    const { data, request_id } = await client.chat.completions.create({ ...toolAsk, messages }).withResponse();
    assert.equal(data.choices[0].finish_reason, 'stop');
    assert.equal(data.choices[0].message.content, TWELVE);
    return request_id;
  });
});

test('streamed tool calls are put together by the helper', async () => {
  const final = await client.chat.completions.stream(toolAsk).finalChatCompletion();
  assert.equal(final.choices[0].finish_reason, 'tool_calls');
  assert.deepEqual(read(final.choices[0].message.tool_calls), expectedCalls);
  assert.equal(new Set(final.choices[0].message.tool_calls.map((call) => call.id)).size, 2);
});

test('runTools calls our functions and answers in the end', async () => {
  const called = [];
  const withFunction = (tool) => ({
    ...tool,
    function: { ...tool.function, parse: JSON.parse, function: (given) => (called.push([tool.function.name, given]), 'fine') },
  });
  const runner = client.chat.completions.runTools({ ...toolAsk, stream: true, tools: [withFunction(weather), withFunction(clock)] });
  assert.equal(await runner.finalContent(), TWELVE);
  assert.deepEqual(Object.fromEntries(called), expectedCalls);
});

test('reasoning comes through and is charged as output', async () => {
  const expected = (input) => input * 2_000 + 7 * 8_000;
  await charged(expected, { input: 2, output: 3, reasoning: 4 }, async () => {
    const request = ask('[[sim:tokens=3 reasoning=4]]', 'demo-reasoning');
    const { data, request_id } = await client.chat.completions.create(request).withResponse();
    assert.equal(data.choices[0].message.reasoning_content, 'the gate opens for');
    assert.equal(data.usage.completion_tokens_details.reasoning_tokens, 4);
    return request_id;
  });
});

test('refusals become the exceptions an application expects', async () => {
  const mark = await house.mark();
  const earlier = await house.balance();
  const wrong = house.client({ apiKey: `sk-${'x'.repeat(48)}` });
  await assert.rejects(wrong.chat.completions.create(ask()), (error) => {
    assert.ok(error instanceof OpenAI.AuthenticationError);
    assert.equal(error.code, 'invalid_api_key');
    assert.match(error.requestID, /^call_/);
    return true;
  });
  await assert.rejects(client.chat.completions.create(ask('Hi', 'no-such-model')), (error) => {
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.deepEqual([error.code, error.param], ['model_not_found', 'model']);
    return true;
  });
  await assert.rejects(client.chat.completions.create({ ...ask(), max_tokens: 'many' }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.deepEqual([error.code, error.param], ['invalid_parameter', 'max_tokens']);
    return true;
  });
  assert.deepEqual(await house.received(mark), [], 'nothing reached the provider');
  await assert.rejects(client.chat.completions.create(ask('[[sim:error429 retry_after=3]]')), (error) => {
    assert.ok(error instanceof OpenAI.RateLimitError);
    assert.equal(error.headers.get('retry-after'), '3');
    return true;
  });
  await assert.rejects(client.chat.completions.create(ask('Hi', 'demo-error')), (error) => {
    assert.ok(error instanceof OpenAI.InternalServerError);
    assert.equal(error.status, 502);
    assert.doesNotMatch(JSON.stringify(error.error), /\.internal|Traceback/);
    return true;
  });
  assert.equal(await house.balance(), earlier, 'none of it cost anything');
});

test('no money is 402 and is not retried', async () => {
  const apiKey = await house.poorKey('0.000001');
  const mark = await house.mark();
  await assert.rejects(house.client({ apiKey, maxRetries: 5 }).chat.completions.create(ask()), (error) => {
    assert.ok(error instanceof OpenAI.APIError);
    assert.deepEqual([error.status, error.code], [402, 'insufficient_balance']);
    return true;
  });
  assert.deepEqual(await house.received(mark), []);
  const rows = (await house.get('/v1/usage', apiKey)).data;
  assert.deepEqual(rows.map((row) => [row.ending, row.charge_nano_usd]), [['refused', 0]], 'one attempt, one row');
  assert.equal(await house.balance(apiKey), 1_000);
});

test('a broken stream raises after the words that came, which are charged', async () => {
  for (const scenario of ['error_midstream after=5', 'cut_midstream after=5 cut=reset', 'cut_midstream after=5 cut=eof']) {
    const row = await charged(demo, null, async () => {
      const request = { ...ask(`[[sim:${scenario}]]`), stream: true };
      const { data: stream, request_id } = await client.chat.completions.create(request).withResponse();
      let text = '';
      await assert.rejects(async () => {
        for await (const chunk of stream) text += chunk.choices[0].delta.content ?? '';
      }, (error) => error instanceof OpenAI.APIError && error.code === 'upstream_error', scenario);
      assert.equal(text, 'the gate opens for every');
      return request_id;
    });
    assert.equal(row.ending, 'upstream_fault');
    assert.equal(row.estimated, true);
    assert.ok(row.usage.output > 0);
  }
  await assert.rejects(client.chat.completions.stream(ask('Hi', 'demo-cut')).finalChatCompletion(), OpenAI.APIError);
});

test('a client that leaves pays for what was said', async () => {
  const row = await charged(demo, null, async () => {
    const request = { ...ask('[[sim:tokens=200 delay_ms=50]]'), stream: true };
    const { data: stream, request_id } = await client.chat.completions.create(request).withResponse();
    let count = 0;
    for await (const _ of stream) if (++count === 6) break;
    await house.usage(request_id);
    return request_id;
  });
  assert.equal(row.ending, 'client_left');
  assert.ok(row.usage.output > 0 && row.usage.output < 60);
});

test('an Idempotency-Key is charged once', async () => {
  const options = { headers: { 'Idempotency-Key': 'sdk-node' } };
  let first;
  await charged(demo(3, 12), { input: 3, output: 12 }, async () => {
    const { data, request_id } = await client.chat.completions.create(ask(), options).withResponse();
    first = { data, request_id };
    return request_id;
  });
  const earlier = await house.balance();
  const again = await client.chat.completions.create(ask(), options).withResponse();
  assert.deepEqual(again.data, first.data);
  assert.equal(again.request_id, first.request_id);
  assert.equal(again.response.headers.get('idempotency-replayed'), 'true');
  await assert.rejects(client.chat.completions.create(ask('other'), options), OpenAI.ConflictError);
  assert.equal(await house.balance(), earlier);
});

test('models', async () => {
  const models = [];
  for await (const model of client.models.list()) models.push(model);
  assert.ok(models.length >= 10 && models.every((model) => model.object === 'model' && model.created > 0));
  const one = await client.models.retrieve('tollgate-demo');
  assert.deepEqual(models.find((model) => model.id === 'tollgate-demo'), one);
  await assert.rejects(client.models.retrieve('no-such-model'), OpenAI.NotFoundError);
});
