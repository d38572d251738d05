// The house under test: the real executable in its own process, reached through a real socket. Prices are worked out by
// hand in the tests; the Python side reads them from the catalog.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import OpenAI from 'openai';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../../..');
export const executable =
  process.env.TOLLGATE_BIN ?? join(process.env.CARGO_TARGET_DIR ?? join(root, 'target'), 'debug/tollgate');
const run = promisify(execFile);

export class House {
  /** `more`: options of `tollgate demo`. */
  static async start(...more) {
    const house = new House();
    house.folder = await mkdtemp(join(tmpdir(), 'tollgate-sdk-'));
    const options = ['demo', '--listen', '127.0.0.1:0', '--json', '--data', join(house.folder, 'data'), ...more];
    // No test here needs a workflow that is verified.
    const env = { ...process.env, TOLLGATE_DEMO_DRAFTS: 'true' };
    house.process = spawn(executable, options, { stdio: ['ignore', 'pipe', 'ignore'], env });
    house.ended = new Promise((done) => house.process.once('exit', (code, signal) => done(signal ?? code)));
    house.ended.catch(() => {});
    const line = await Promise.race([
      new Promise((done, fail) => {
        house.process.once('error', fail);
        createInterface({ input: house.process.stdout }).once('line', done);
      }),
      house.ended.then((code) => Promise.reject(new Error(`tollgate ended at once: ${code}`))),
      sleep(30_000, undefined, { ref: false }).then(() => Promise.reject(new Error('tollgate is not ready'))),
    ]);
    const ready = JSON.parse(line);
    house.baseUrl = ready.base_url;
    house.key = ready.key;
    house.authority = ready.ca_file;
    house.simUrl = ready.sim_url.replace(/\/v1$/, '');
    return house;
  }

  /** SIGTERM, then the books are checked: no hold open, every number adds up. */
  async stop() {
    try {
      const accounts = await this.cli('account', 'list');
      assert.deepEqual(accounts.filter((one) => one.trial_held_nano_usd || one.paid_held_nano_usd), [], 'holds are left open');
      this.process.kill('SIGTERM');
      assert.equal(await this.ended, 0, 'exit code after SIGTERM');
      const report = await this.cli('ledger', 'verify');
      assert.deepEqual(report.breaches, []);
    } finally {
      this.process.kill('SIGKILL');
      await rm(this.folder, { recursive: true, force: true });
    }
  }

  client(options = {}) {
    return new OpenAI({ apiKey: this.key, baseURL: `${this.baseUrl}/v1`, maxRetries: 0, timeout: 30_000, ...options });
  }

  async cli(...words) {
    const config = join(this.folder, 'data/tollgate.toml');
    const { stdout } = await run(executable, ['--config', config, '--json', ...words], { timeout: 60_000 });
    return JSON.parse(stdout);
  }

  /** A key of a new account with that much trial credit. */
  async poorKey(usd) {
    const account = await this.cli('account', 'create', 'poor', '--trial', usd);
    return (await this.cli('key', 'create', account.account_id)).secret;
  }

  async get(path, key = this.key) {
    const reply = await fetch(this.baseUrl + path, { headers: { authorization: `Bearer ${key}` } });
    assert.equal(reply.status, 200, path);
    return reply.json();
  }

  async balance(key) {
    const balance = await this.get('/v1/balance', key);
    assert.equal(balance.held_nano_usd, 0);
    return balance.available_nano_usd;
  }

  async usage(callId) {
    for (let tries = 0; ; tries++) {
      const reply = await fetch(`${this.baseUrl}/v1/usage/${callId}`, { headers: { authorization: `Bearer ${this.key}` } });
      if (reply.status === 200) return reply.json();
      assert.ok(tries < 100, `no usage row of ${callId}: ${reply.status}`);
      await sleep(50);
    }
  }

  /** The newest call of the account. */
  async newest() {
    return (await this.get('/v1/usage?limit=1')).data[0];
  }

  /**
   * A client of one of the models that differ in their provider leaves in mid-stream: the provider notices at once, and the call
   * is charged for what was said until then, at the published price.
   */
  async left(model, leave) {
    const mark = await this.mark();
    const earlier = (await this.newest())?.call_id;
    await leave();
    let [row, seen] = [];
    for (let tries = 0; ; tries++) {
      [row, seen] = [await this.newest(), (await this.received(mark))[0]];
      if (row.call_id !== earlier && row.ending && seen.client_closed_at_ms) break;
      assert.ok(tries < 100, `not noticed: ${JSON.stringify([row, seen])}`);
      await sleep(50);
    }
    // Gemini reports with every fragment what was used until then; for the others we count.
    assert.deepEqual([row.model, row.ending, row.estimated], [model, 'client_left', model !== 'gemini-demo-gemini']);
    assert.equal(seen.finished, false, 'the provider went on to its end');
    assert.ok(row.usage.output > 0 && row.usage.output < 100, JSON.stringify(row));
    // 1 and 4 USD per million tokens (catalog/dialects.toml).
    assert.equal(row.charge_nano_usd, row.usage.input * 1_000 + row.usage.output * 4_000);
    assert.ok(row.charge_nano_usd <= row.hold_nano_usd);
  }

  /** Requests that reached the provider after the given mark. */
  async received(mark = 0) {
    const reply = await fetch(`${this.simUrl}/_sim/received?since=${mark}`);
    return (await reply.json()).received;
  }

  async mark() {
    return Math.max(0, ...(await this.received()).map((one) => one.id));
  }
}
