// The JavaScript of README.md, taken from the page as it stands.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { House } from './house.js';

const here = dirname(fileURLToPath(import.meta.url));
// Beside node_modules, because that is where `openai` is looked for.
const file = join(here, `readme-${process.pid}.mjs`);

let house;
before(async () => {
  house = await House.start();
});
after(async () => {
  await rm(file, { force: true });
  await house?.stop();
});

test('the block of the page runs', async () => {
  const page = await readFile(resolve(here, '../../../README.md'), 'utf8');
  const found = [...page.matchAll(/```js\n(.*?)```/gs)];
  assert.equal(found.length, 1);
  await writeFile(file, found[0][1]);
  const env = { ...process.env, OPENAI_BASE_URL: `${house.baseUrl}/v1`, OPENAI_API_KEY: house.key };
  const { stdout } = await promisify(execFile)(process.execPath, [file], { env, timeout: 60_000 });
  const lines = stdout.trimEnd().split('\n');
  assert.equal(lines[0], 'the gate opens for every coin and counts each one with care');
  assert.ok(lines.length === 2 && lines[1].length > 0, stdout);
});
