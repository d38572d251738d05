// A coding agent that speaks Responses completes a turn with its shell, on a provider that speaks Anthropic's dialect. The agent is
// `@openai/codex` from npm, which is too large to be installed with the other clients: name its executable in TOLLGATE_CODEX
// (`npm i @openai/codex` in a folder of its own; node_modules/.bin/codex). Nothing here reaches OpenAI.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { executable } from './house.js';

const run = promisify(execFile);
const codex = process.env.TOLLGATE_CODEX;

const freePort = () =>
  new Promise((done) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });

/** Gateway and simulator in a folder of their own, with a model whose provider speaks Anthropic's dialect. */
async function house(folder) {
  const [listen, sim] = [await freePort(), await freePort()];
  await mkdir(join(folder, 'catalog'));
  await writeFile(
    join(folder, 'catalog/models.toml'),
    `[model."agent-model"]
context_window = 200000
max_output_tokens = 8000
supported_endpoint_types = ["openai-response"]
price = { input = 1_000_000, output = 2_000_000 }
route = [{ provider = "claude", upstream_model = "sim-agent" }]
`,
  );
  const config = join(folder, 'tollgate.toml');
  await writeFile(
    config,
    `listen = "127.0.0.1:${listen}"
data_dir = "data"
[provider.claude]
kind = "anthropic"
base_url = "http://127.0.0.1:${sim}"
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

test('a coding agent uses its shell', { skip: !codex && 'TOLLGATE_CODEX is not set', timeout: 120_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-codex-'));
  const place = await house(folder);
  try {
    await mkdir(join(folder, 'home'));
    await mkdir(join(folder, 'work'));
    await writeFile(
      join(folder, 'home/config.toml'),
      `model = "agent-model"
model_provider = "tollgate"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.tollgate]
name = "Tollgate"
base_url = "${place.url}/v1"
env_key = "TOLLGATE_KEY"
wire_api = "responses"
`,
    );
    const wish = 'Run it. [[sim:reasoning_tools calls=1 tool=exec_command args={"cmd":"echo${IFS}gate-$((6*7))>proof.txt"}]]';
    const agent = spawn(codex, ['exec', '--skip-git-repo-check', '--json', wish], {
      cwd: join(folder, 'work'),
      env: { ...process.env, CODEX_HOME: join(folder, 'home'), TOLLGATE_KEY: place.secret },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let told = '';
    agent.stdout.on('data', (piece) => (told += piece));
    await new Promise((done) => agent.once('close', done));
    const kinds = told.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line).type);
    assert.ok(kinds.includes('turn.completed'), told);
    assert.equal(await readFile(join(folder, 'work/proof.txt'), 'utf8'), 'gate-42\n', 'the shell was used');
    const { received } = await (await fetch(`${place.sim}/_sim/received`)).json();
    assert.deepEqual(received.map((call) => [call.path, call.status]), [['/v1/messages', 200], ['/v1/messages', 200]]);
    const [thought, call] = received[1].body.messages.findLast((turn) => turn.role === 'assistant').content;
    assert.deepEqual([thought.type, call.type, call.name], ['thinking', 'tool_use', 'exec_command']);
    assert.ok(thought.signature, 'the provider got its own seal back');
    assert.deepEqual((await place.cli('ledger', 'verify')).breaches, []);
  } finally {
    place.stop();
    await sleep(500);
    await rm(folder, { recursive: true, force: true });
  }
});
