// Gateway and simulator for a coding agent, in a folder of their own. The agents are too large to be installed with the other clients, so their
// tests run only when an executable is named. Nothing here reaches their makers.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { executable } from './house.js';

const run = promisify(execFile);

/** What a provider of each kind is called, and the path that it is asked at. */
export const KINDS = {
  anthropic: { base: '', model: 'sim-agent', path: '/v1/messages' },
  openai: { base: '/v1', model: 'sim-strict', path: '/v1/chat/completions' },
  'openai-responses': { base: '/v1', model: 'sim-agent', path: '/v1/responses' },
};

const freePort = () =>
  new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });

/** A model whose provider is of this kind. */
async function house(folder, kind) {
  const { base, model } = KINDS[kind];
  const [listen, sim] = [await freePort(), await freePort()];
  await mkdir(join(folder, 'catalog'));
  await writeFile(
    join(folder, 'catalog/models.toml'),
    `[model."agent-model"]
context_window = 200000
max_output_tokens = 8000
reasoning_efforts = ["low", "medium", "high"]
supported_endpoint_types = ["anthropic", "openai-response"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "maker", upstream_model = "${model}" }]
`,
  );
  const config = join(folder, 'tollgate.toml');
  await writeFile(
    config,
    `listen = "127.0.0.1:${listen}"
data_dir = "data"
[provider.maker]
kind = "${kind}"
base_url = "http://127.0.0.1:${sim}${base}"
`,
  );
  const start = (...words) => spawn(executable, words, { stdio: 'ignore' });
  const processes = [start('sim', '--listen', `127.0.0.1:${sim}`), start('--config', config, 'serve')];
  const url = `http://127.0.0.1:${listen}`;
  for (let tries = 0; !(await fetch(`${url}/readyz`).then((reply) => reply.ok, () => false)); tries++) {
    assert.ok(tries < 150, 'the gateway is not ready');
    await sleep(200);
  }
  const cli = async (...words) => JSON.parse((await run(executable, ['--config', config, '--json', ...words])).stdout);
  const account = await cli('account', 'create', 'agent');
  await run(executable, ['--config', config, 'account', 'topup', account.id, '5']);
  const { secret } = await cli('key', 'create', account.id);
  return { url, sim: `http://127.0.0.1:${sim}`, secret, cli, stop: () => processes.forEach((one) => one.kill('SIGTERM')) };
}

/** Runs an agent in a folder of its own, with nothing but this environment; gives what it printed. */
export async function withAgent(kind, test) {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-agent-'));
  const place = await house(folder, kind);
  await mkdir(join(folder, 'home'));
  await mkdir(join(folder, 'work'));
  const agent = async (command, words, env) => {
    const options = { cwd: join(folder, 'work'), stdio: ['ignore', 'pipe', 'ignore'] };
    const process_ = spawn(command, words, { ...options, env: { PATH: process.env.PATH, HOME: join(folder, 'home'), ...env } });
    let output = '';
    process_.stdout.on('data', (piece) => (output += piece));
    await new Promise((done) => process_.once('close', done));
    return output;
  };
  const received = async () => (await (await fetch(`${place.sim}/_sim/received`)).json()).received;
  try {
    await test({ ...place, folder, agent, received });
    assert.deepEqual((await place.cli('ledger', 'verify')).breaches, []);
  } finally {
    place.stop();
    await sleep(500);
    await rm(folder, { recursive: true, force: true });
  }
}
