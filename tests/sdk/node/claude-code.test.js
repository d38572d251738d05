// A coding agent that speaks Anthropic's dialect completes a turn with its shell, on providers of three kinds. The agent is `@anthropic-ai/claude-code` from
// npm: name its executable in TOLLGATE_CLAUDE_CODE (`npm i @anthropic-ai/claude-code` in a folder of its own; the file `claude` of the package for the platform).

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { KINDS, withAgent } from './agents.js';

const claude = process.env.TOLLGATE_CLAUDE_CODE;
const wish =
  'Run it. [[sim:reasoning_tools calls=1 tool=Bash args={"command":"echo${IFS}gate-$((6*7))>proof.txt","description":"x"}]]';

for (const [kind, { path }] of Object.entries(KINDS)) {
  test(`claude code uses its shell on ${kind}`, { skip: !claude && 'TOLLGATE_CLAUDE_CODE is not set', timeout: 180_000 }, () =>
    withAgent(kind, async ({ url, secret, folder, agent, received }) => {
      const output = await agent(claude, ['-p', wish, '--dangerously-skip-permissions'], {
        IS_SANDBOX: '1',
        ANTHROPIC_BASE_URL: url,
        ANTHROPIC_AUTH_TOKEN: secret,
        ANTHROPIC_MODEL: 'agent-model',
        ANTHROPIC_SMALL_FAST_MODEL: 'agent-model',
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      });
      assert.match(output, /gate/, output);
      assert.equal(await readFile(join(folder, 'work/proof.txt'), 'utf8'), 'gate-42\n', 'the shell was used');
      const calls = await received();
      assert.deepEqual(calls.map((call) => [call.path, call.status]), [[path, 200], [path, 200]]);
    }),
  );
}
