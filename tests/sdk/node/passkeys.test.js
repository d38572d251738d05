// Passkeys of somebody else's making: an npm emulator of authenticators and of the browser's API, with its own CBOR and its own
// signatures, at the real executable. All three algorithms; and what must be refused.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import emulator from 'nid-webauthn-emulator';
import { Gate, freePort } from './gate.js';

const { WebAuthnEmulator, AuthenticatorEmulator, PasskeysCredentialsMemoryRepository } = emulator;
const PATH = '/api/session/passkeys';
let gate, origin;

before(async () => {
  const port = await freePort();
  origin = `http://localhost:${port}`;
  gate = await Gate.start(port, `
public_url = "${origin}"

[people]
enabled = true

[people.passkeys]
rp_name = "Gate"
`);
});

after(() => gate?.stop());

/** A browser on a page of ours. */
class Browser {
  cookies = new Map();

  async ask(method, path, body) {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const headers = { cookie, origin, 'content-type': 'application/json' };
    const reply = await fetch(gate.address + path, { method, headers, body: body && JSON.stringify(body) });
    for (const line of reply.headers.getSetCookie()) {
      const [, name, value] = line.match(/^([^=]+)=([^;]*)/);
      if (value === '') this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return [reply.status, await reply.json()];
  }

  async begin(what) {
    const [status, begun] = await this.ask('POST', `${PATH}${what}/start`, {});
    assert.equal(status, 200, JSON.stringify(begun));
    return begun.publicKey;
  }

  async add(name, device) {
    return this.ask('POST', PATH, { name, credential: device.createJSON(origin, await this.begin('')) });
  }

  async show(what, device) {
    return this.ask('POST', PATH + what, { credential: device.getJSON(origin, await this.begin(what)) });
  }
}

/** A device with passkeys of its own. */
function device(algorithm, more = {}) {
  const credentialsRepository = new PasskeysCredentialsMemoryRepository();
  const params = { algorithmIdentifiers: [algorithm], credentialsRepository, ...more };
  return new WebAuthnEmulator(new AuthenticatorEmulator(params));
}

/** Somebody who is signed in by a one-time link. */
async function signedIn(email) {
  const { token } = await gate.cli('person', 'create', email, '--reason', 'a test');
  const browser = new Browser();
  const [status, session] = await browser.ask('POST', '/api/session/link', { token });
  assert.equal(status, 200, JSON.stringify(session));
  return [browser, session.person.person_id];
}

for (const algorithm of ['ES256', 'EdDSA', 'RS256']) {
  test(`${algorithm}: a passkey is added, signs in, proves again, and is removed`, async () => {
    const [desk, person] = await signedIn(`${algorithm.toLowerCase()}@example.com`);
    const phone = device(algorithm);
    const [status, added] = await desk.add('phone', phone);
    assert.equal(status, 200, JSON.stringify(added));
    assert.deepEqual([added.name, added.transports, added.used_at_ms], ['phone', ['usb'], null]);
    // The same device knows that it has one here already.
    await assert.rejects(desk.add('again', phone), { name: 'NotAllowedError' });
    for (let times = 0; times < 3; times++) {
      const elsewhere = new Browser();
      const [signed, session] = await elsewhere.show('/sign-in', phone);
      assert.equal(signed, 200, JSON.stringify(session));
      assert.deepEqual([session.person.person_id, session.strong], [person, true]);
    }
    const before = desk.cookies.get('tollgate_session');
    const [proved, session] = await desk.show('/step-up', phone);
    assert.deepEqual([proved, session.strong], [200, true], JSON.stringify(session));
    assert.notEqual(desk.cookies.get('tollgate_session'), before);
    // It is the only way in.
    const path = `${PATH}/${added.passkey_id}`;
    assert.equal((await desk.ask('DELETE', path))[0], 409);
    assert.equal((await desk.add('second', device(algorithm)))[0], 200);
    assert.equal((await desk.ask('DELETE', path))[0], 200);
    const [gone, refused] = await new Browser().show('/sign-in', phone);
    assert.deepEqual([gone, refused.error.code], [401, 'sign_in_failed']);
  });
}

test('a device that verified nobody, a repetition and a counter that stands still are refused', async () => {
  const [desk] = await signedIn('bob@example.com');
  const silent = (user) => ({ user, options: { uv: false, up: true } });
  const lax = device('ES256', { userMakeCredentialInteraction: silent });
  const [status, refused] = await desk.add('lax', lax);
  assert.deepEqual([status, refused.error.param], [400, 'credential.response.attestationObject'], JSON.stringify(refused));
  const repository = new PasskeysCredentialsMemoryRepository();
  const own = (more) => device('ES256', { credentialsRepository: repository, ...more });
  assert.equal((await desk.add('own', own()))[0], 200);
  const browser = new Browser();
  const credential = own().getJSON(origin, await browser.begin('/sign-in'));
  const cookies = new Map(browser.cookies);
  assert.equal((await browser.ask('POST', `${PATH}/sign-in`, { credential }))[0], 200);
  browser.cookies = cookies;
  assert.equal((await browser.ask('POST', `${PATH}/sign-in`, { credential }))[0], 403, 'once');
  const [back, copy] = await new Browser().show('/sign-in', own({ signCounterIncrement: 0 }));
  assert.deepEqual([back, copy.error.code], [401, 'sign_in_failed']);
  assert.match(copy.error.message, /counter/);
  const [, listed] = await desk.ask('GET', PATH);
  assert.ok(listed.data[0].suspected_at_ms > 0);
  assert.equal((await new Browser().show('/sign-in', own()))[0], 200, 'the right one goes on');
});
