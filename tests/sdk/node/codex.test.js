// A coding agent that speaks Responses completes a turn with its shell, on providers of three kinds. The agent is `@openai/codex` from npm: name its
// executable in TOLLGATE_CODEX (`npm i @openai/codex` in a folder of its own; node_modules/.bin/codex).

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { KINDS, withAgent } from './agents.js';

const codex = process.env.TOLLGATE_CODEX;
const wish = 'Run it. [[sim:reasoning_tools calls=1 tool=exec_command args={"cmd":"echo${IFS}gate-$((6*7))>proof.txt"}]]';

for (const [kind, { path }] of Object.entries(KINDS)) {
  test(`codex uses its shell on ${kind}`, { skip: !codex && 'TOLLGATE_CODEX is not set', timeout: 180_000 }, () =>
    withAgent(kind, async ({ url, secret, folder, agent, received }) => {
      const home = join(folder, 'home');
      await writeFile(
        join(home, 'config.toml'),
        `model = "agent-model"
model_provider = "tollgate"
approval_policy = "never"
sandbox_mode = "danger-full-access"
[model_providers.tollgate]
name = "Tollgate"
base_url = "${url}/v1"
env_key = "TOLLGATE_KEY"
wire_api = "responses"
`,
      );
      const words = ['exec', '--skip-git-repo-check', '--json', wish];
      const output = await agent(codex, words, { CODEX_HOME: home, TOLLGATE_KEY: secret });
      const kinds = output.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line).type);
      assert.ok(kinds.includes('turn.completed'), output);
      assert.equal(await readFile(join(folder, 'work/proof.txt'), 'utf8'), 'gate-42\n', 'the shell was used');
      const calls = await received();
      assert.deepEqual(calls.map((call) => [call.path, call.status]), [[path, 200], [path, 200]]);
      if (kind === 'anthropic') {
        const [thought, call] = calls[1].body.messages.findLast((turn) => turn.role === 'assistant').content;
        assert.deepEqual([thought.type, call.type, call.name], ['thinking', 'tool_use', 'exec_command']);
        assert.ok(thought.signature, 'the provider got its own seal back');
      }
    }),
  );
}
