// Realtime over wss: the official npm SDK dials nothing else. The gateway is a demo with a certificate of its own, which the clients
// trust in the way that `tollgate demo --tls` says.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { House } from './house.js';

const MODEL = 'demo-realtime';
const CLIENT = fileURLToPath(new URL('./realtime-client.js', import.meta.url));

let house;
before(async () => {
  house = await House.start('--tls');
});
after(async () => house?.stop());

/** What a client in a process of its own says, line by line. */
async function* client(task, trust = house.authority) {
  const settings = { apiKey: house.key, baseURL: `${house.baseUrl}/v1`, model: MODEL, ...task };
  const env = { ...process.env, ...(trust && { NODE_EXTRA_CA_CERTS: trust }) };
  const child = spawn(process.execPath, [CLIENT, JSON.stringify(settings)], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let words = '';
  child.stderr.on('data', (part) => (words += part));
  const ended = new Promise((done) => child.once('close', done));
  for await (const line of createInterface({ input: child.stdout })) yield JSON.parse(line);
  assert.equal(await ended, 0, words);
}

async function answer(task, trust) {
  for await (const line of client(task, trust)) return line;
  return undefined;
}

test('a session over wss is held, charged and in the usage log', async () => {
  assert.ok(house.baseUrl.startsWith('https://'));
  const { text, status, usage, end } = await answer({ job: 'talk' });
  assert.equal(status, 'completed');
  assert.ok(text.length > 0 && usage.output_tokens > 0, JSON.stringify(usage));
  assert.equal(end.code, 1000);
  const rows = await house.cli('usage', '--limit', '10').then((page) => page.data ?? page);
  const [row, ...more] = rows.filter((one) => one.charge_nano_usd > 0);
  assert.deepEqual([row?.model, more], [MODEL, []]);
  assert.ok(row.charge_nano_usd <= row.hold_nano_usd, JSON.stringify(row));
});

test('a client secret opens the session it was made for, in Node and as in a browser', async () => {
  const session = { type: 'realtime', model: MODEL, instructions: 'Speak like a gatekeeper.' };
  const made = await answer({ job: 'secret', session });
  assert.match(made.value, /^ek_/);
  for (const browser of [false, true]) {
    const { status, shown } = await answer({ job: 'talk', apiKey: made.value, browser, configured: true });
    assert.deepEqual([status, shown.instructions], ['completed', session.instructions]);
  }
});

test('the block of docs/realtime.md runs', async () => {
  const page = await readFile(new URL('../../../docs/realtime.md', import.meta.url), 'utf8');
  const [[, block], ...more] = page.matchAll(/```js\n(.*?)```/gs);
  assert.equal(more.length, 0);
  // Beside node_modules, because that is where `openai` is looked for.
  const file = fileURLToPath(new URL(`./realtime-page-${process.pid}.mjs`, import.meta.url));
  await writeFile(file, block);
  const trust = { NODE_EXTRA_CA_CERTS: house.authority, OPENAI_BASE_URL: `${house.baseUrl}/v1`, OPENAI_API_KEY: house.key };
  try {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], { env: { ...process.env, ...trust }, timeout: 60_000 });
    assert.deepEqual([stdout, stderr], ['the toll is paid and the gate opens', '']);
  } finally {
    await rm(file, { force: true });
  }
});

test('an unknown client secret opens nothing', async () => {
  const { errors } = await answer({ job: 'refused', apiKey: 'ek_unknown' });
  assert.match(errors.join(), /401/);
});

test('a certificate that is not trusted is not spoken with', async () => {
  const { errors } = await answer({ job: 'refused' }, '');
  assert.ok(errors.length > 0 && !errors.join().includes('401'), errors.join());
});

test('a revoked key closes its sessions', async () => {
  const [account] = await house.cli('account', 'list');
  const key = await house.cli('key', 'create', account.account_id);
  const lines = client({ job: 'wait', apiKey: key.secret });
  assert.equal((await lines.next()).value, 'open');
  await house.cli('key', 'revoke', key.key_id);
  const { end, errors } = (await lines.next()).value;
  assert.deepEqual([end.code, errors], [1008, ['invalid_api_key']]);
});
