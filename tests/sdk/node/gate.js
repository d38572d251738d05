// A gateway with a configuration of the test's own, for what `tollgate demo` does not have: people who sign in.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { executable } from './house.js';

const run = promisify(execFile);

/** A port that is free a moment later: others must know it before the gateway has it. */
export async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

export class Gate {
  /** `config` is what follows the address and the folders; `files` lie beside it. */
  static async start(port, config, files = {}) {
    const gate = new Gate();
    gate.folder = await mkdtemp(join(tmpdir(), 'tollgate-gate-'));
    gate.address = `http://127.0.0.1:${port}`;
    await mkdir(join(gate.folder, 'catalog'));
    const lines = [`listen = "127.0.0.1:${port}"`, 'data_dir = "data"', 'catalog_dir = "catalog"', config];
    const all = { ...files, 'tollgate.toml': lines.join('\n') };
    for (const [name, text] of Object.entries(all)) await writeFile(join(gate.folder, name), text);
    gate.config = join(gate.folder, 'tollgate.toml');
    gate.process = spawn(executable, ['serve', '--config', gate.config], { stdio: ['ignore', 'ignore', 'pipe'] });
    let words = '';
    gate.process.stderr.on('data', (part) => (words += part));
    gate.ended = new Promise((done) => gate.process.once('exit', (code, signal) => done(signal ?? code)));
    for (let tries = 0; ; tries++) {
      if (await fetch(`${gate.address}/readyz`).then((reply) => reply.ok, () => false)) return gate;
      assert.ok(tries < 300 && gate.process.exitCode === null, `tollgate is not ready: ${words}`);
      await sleep(100);
    }
  }

  async cli(...words) {
    return JSON.parse((await run(executable, ['--config', this.config, '--json', ...words])).stdout);
  }

  async stop() {
    this.process.kill('SIGTERM');
    const code = await this.ended;
    await rm(this.folder, { recursive: true, force: true });
    return code;
  }
}
