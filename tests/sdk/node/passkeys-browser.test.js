// Passkeys in a real browser: Chromium with a virtual authenticator, on a page of the gateway's own origin, running the lines of
// docs/people.md as they stand. Where there is no Chromium the tests are skipped, and `scripts/sdk` says so.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { Chromium, chromium } from './browser.js';
import { Gate, freePort } from './gate.js';

const skip = chromium() ? false : 'there is no Chromium: apt-get install chromium, or name one by TOLLGATE_CHROMIUM';
let browser, gate, origin, script;

before(async () => {
  if (skip) return;
  const page = await readFile(new URL('../../../docs/people.md', import.meta.url), 'utf8');
  script = page.split('## Signing in by a passkey')[1].match(/^```js\n(.*?)^```/ms)[1];
  const port = await freePort();
  origin = `http://localhost:${port}`;
  gate = await Gate.start(port, `
public_url = "${origin}"

[people]
enabled = true

[people.passkeys]
rp_name = "Gate"
`);
  browser = await Chromium.start();
});

after(async () => {
  await browser?.stop();
  await gate?.stop();
});

/** A page of ours, with the functions of the documentation. */
async function opened(at = origin) {
  const page = await browser.page();
  await page.open(`${at}/api/sign-up`, script);
  return page;
}

const asked = (page, method, path, body) =>
  page.run(`fetch(${JSON.stringify(path)}, { method: ${JSON.stringify(method)}, headers: { 'Content-Type': 'application/json' },
    body: ${body ? JSON.stringify(JSON.stringify(body)) : 'undefined'} }).then(async (reply) => [reply.status, await reply.json()])`);

/** A page of somebody who is signed in by a one-time link. */
async function signedIn(email) {
  const { token } = await gate.cli('person', 'create', email, '--reason', 'a test');
  const page = await opened();
  const [status, session] = await asked(page, 'POST', '/api/session/link', { token });
  assert.equal(status, 200, JSON.stringify(session));
  return [page, session.person.person_id];
}

const session = async (page) => (await page.cookies(origin)).find((cookie) => cookie.name === 'tollgate_session');

test('a browser makes a passkey, signs in with it without an e-mail, and steps up', { skip }, async () => {
  const [page, person] = await signedIn('ada@example.com');
  const device = await page.device();
  const added = await page.run(`addPasskey('laptop')`);
  assert.deepEqual([added.name, added.transports, added.used_at_ms, added.usable], ['laptop', ['internal'], null, true]);
  const [made, ...more] = await page.passkeys(device);
  assert.deepEqual([made.isResidentCredential, made.rpId, more.length], [true, 'localhost', 0]);

  // Signed out, the browser knows nothing but the passkey.
  assert.equal((await asked(page, 'DELETE', '/api/session'))[0], 200);
  assert.equal(await session(page), undefined);
  assert.equal((await asked(page, 'GET', '/api/session'))[1].error.code, 'not_signed_in');
  const signed = await page.run(`showPasskey('/sign-in')`);
  assert.deepEqual([signed.person.person_id, signed.person.email, signed.strong], [person, 'ada@example.com', true]);
  const cookie = await session(page);
  assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path], [true, 'Lax', '/']);
  assert.equal(await page.run('document.cookie'), '', 'no script reads it');

  const proved = await page.run(`showPasskey('/step-up')`);
  assert.deepEqual([proved.person.person_id, proved.strong], [person, true]);
  assert.notEqual((await session(page)).value, cookie.value, 'another session from here on');
  const [status, listed] = await asked(page, 'GET', '/api/session/passkeys');
  assert.equal(status, 200);
  assert.ok(listed.data[0].used_at_ms > 0 && listed.data[0].suspected_at_ms === null, JSON.stringify(listed));
  const [used] = await page.passkeys(device);
  assert.equal(used.signCount - made.signCount, 2, 'the device counted both');

  // The browser itself knows that this device has one.
  await assert.rejects(page.run(`addPasskey('again')`), { name: 'InvalidStateError' });
  assert.equal((await asked(page, 'GET', '/api/session/passkeys'))[1].data.length, 1);
});

test('a synced passkey of another device signs in there', { skip }, async () => {
  const [page, person] = await signedIn('bea@example.com');
  const device = await page.device({ defaultBackupEligibility: true, defaultBackupState: true });
  const added = await page.run(`addPasskey('phone')`);
  assert.equal(added.backed_up, true, JSON.stringify(added));
  const [passkey] = await page.passkeys(device);
  const elsewhere = await opened();
  const other = await elsewhere.device({ transport: 'hybrid', defaultBackupEligibility: true, defaultBackupState: true });
  await elsewhere.send('WebAuthn.addCredential', { authenticatorId: other, credential: { ...passkey, signCount: passkey.signCount } });
  const signed = await elsewhere.run(`showPasskey('/sign-in')`);
  assert.deepEqual([signed.person.person_id, signed.strong], [person, true]);
});

test('who is not verified, a page of elsewhere and a device without passkeys get nothing', { skip }, async () => {
  const [page] = await signedIn('bob@example.com');
  const device = await page.device();
  assert.equal((await page.run(`addPasskey('own')`)).name, 'own');
  await page.send('WebAuthn.setUserVerified', { authenticatorId: device, isUserVerified: false });
  await assert.rejects(page.run(`showPasskey('/step-up')`), { name: 'NotAllowedError' });
  await page.send('WebAuthn.setUserVerified', { authenticatorId: device, isUserVerified: true });
  assert.equal((await page.run(`showPasskey('/step-up')`)).strong, true);

  // The same gateway under another name: browsers do not show passkeys of one domain to another.
  const elsewhere = await opened(gate.address);
  await elsewhere.device();
  await assert.rejects(elsewhere.run(`showPasskey('/sign-in')`), { name: 'SecurityError' });

  const empty = await opened();
  await empty.device();
  await assert.rejects(empty.run(`showPasskey('/sign-in')`), { name: 'NotAllowedError' });
});
