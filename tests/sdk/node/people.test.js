// Signing in by an issuer of OpenID Connect: the certified npm implementation of one, and the real executable, as a browser walks
// between them: cookies of each host, redirects one by one, the issuer's own pages for sign-in and consent.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import Provider from 'oidc-provider';
import { Gate, freePort } from './gate.js';

const SECRET = 'a client secret with : and % in it';
let gate, gateUrl, issuer, issuerUrl;

before(async () => {
  const port = await freePort();
  gateUrl = `http://127.0.0.1:${port}`;
  issuer = createServer();
  await new Promise((done) => issuer.listen(0, '127.0.0.1', done));
  issuerUrl = `http://127.0.0.1:${issuer.address().port}`;
  const provider = new Provider(issuerUrl, {
    clients: [{
      client_id: 'tollgate',
      client_secret: SECRET,
      redirect_uris: [`${gateUrl}/api/session/oidc/local/return`],
      response_types: ['code'],
    }],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    cookies: { keys: ['a key of the test'] },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, email: `${id}@corp.example`, email_verified: id !== 'unverified', name: id }),
    }),
    pkce: { required: () => true },
  });
  issuer.on('request', provider.callback());

  gate = await Gate.start(port, `
public_url = "${gateUrl}"

[people]
enabled = true

[people.oidc.local]
issuer = "${issuerUrl}"
client_id = "tollgate"
client_secret_file = "secret"
label = "Local"
sign_up = "open"
`, { secret: `${SECRET}\n` });
});

after(async () => {
  await gate?.stop();
  issuer?.closeAllConnections();
  issuer?.close();
});

/** A browser: cookies of each host, no redirect by itself. */
class Browser {
  cookies = new Map();

  async fetch(url, options = {}) {
    const { host, origin } = new URL(url);
    const own = this.cookies.get(host) ?? new Map();
    const headers = { ...options.headers, cookie: [...own].map(([name, value]) => `${name}=${value}`).join('; ') };
    if (origin === gateUrl && options.method) headers['sec-fetch-site'] = 'same-origin';
    const reply = await fetch(url, { redirect: 'manual', ...options, headers });
    for (const line of reply.headers.getSetCookie()) {
      const [pair] = line.split(';');
      const [name, value] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)];
      if (value === '' || /expires=thu, 01 jan 1970/i.test(line)) own.delete(name);
      else own.set(name, value);
    }
    this.cookies.set(host, own);
    return reply;
  }

  post(path, body = {}) {
    const headers = { 'content-type': 'application/json' };
    return this.fetch(gateUrl + path, { method: 'POST', headers, body: JSON.stringify(body) });
  }

  /** Follows the issuer's pages as this person until it sends the browser back; the address that it is sent to. */
  async walk(url, login) {
    for (let steps = 0; steps < 20; steps++) {
      if (url.startsWith(gateUrl)) return url;
      const reply = await this.fetch(url);
      if (reply.status >= 300 && reply.status < 400) {
        url = new URL(reply.headers.get('location'), url).href;
        continue;
      }
      const page = await reply.text();
      assert.equal(reply.status, 200, page);
      const [, action] = page.match(/action="([^"]+)"/);
      const [, prompt] = page.match(/name="prompt" value="([^"]+)"/);
      const body = new URLSearchParams(prompt === 'login' ? { prompt, login, password: 'any' } : { prompt });
      const next = await this.fetch(new URL(action, url).href, { method: 'POST', body });
      url = new URL(next.headers.get('location'), url).href;
    }
    throw new Error('the issuer comes to no end');
  }

  async begin(what, to = '/keys') {
    const reply = await this.post(`/api/session/oidc/local/${what}`, { return_to: to });
    const begun = await reply.json();
    assert.equal(reply.status, 200, JSON.stringify(begun));
    return begun.url;
  }

  async signIn(login) {
    const back = await this.walk(await this.begin('start'), login);
    return [await this.fetch(back), back];
  }

  async session() {
    const reply = await this.fetch(`${gateUrl}/api/session`);
    return reply.status === 200 ? reply.json() : reply.status;
  }
}

test('somebody signs up by a certified issuer, and signs in again', async () => {
  const shown = await (await fetch(`${gateUrl}/api/sign-up`)).json();
  assert.deepEqual(shown.issuers, [{ name: 'local', label: 'Local', sign_up: 'open' }]);
  const ada = new Browser();
  const [reply, back] = await ada.signIn('ada');
  assert.deepEqual([reply.status, reply.headers.get('location')], [303, '/keys'], await reply.text());
  assert.equal(new URL(back).searchParams.get('iss'), issuerUrl, 'it names itself (RFC 9207)');
  const session = await ada.session();
  assert.equal(session.person.email, 'ada@corp.example', 'from userinfo, which this issuer has it in');
  assert.equal(session.accounts[0].role, 'owner');
  // The answer counts once.
  assert.equal((await ada.fetch(back)).status, 403);
  const again = new Browser();
  assert.equal((await again.signIn('ada'))[0].status, 303);
  assert.equal((await again.session()).person.person_id, session.person.person_id);
});

test('proving again who somebody is asks the issuer anew', async () => {
  const ada = new Browser();
  await ada.signIn('ada');
  const before = ada.cookies.get(new URL(gateUrl).host).get('tollgate_session');
  const back = await ada.walk(await ada.begin('step-up', '/members'), 'ada');
  const reply = await ada.fetch(back);
  assert.deepEqual([reply.status, reply.headers.get('location')], [303, '/members'], await reply.text());
  assert.notEqual(ada.cookies.get(new URL(gateUrl).host).get('tollgate_session'), before);
  assert.equal((await ada.session()).strong, true);
});

test('nobody comes in with an e-mail that is not verified, or with the answer of another browser', async () => {
  const [refused] = await new Browser().signIn('unverified');
  assert.equal(refused.status, 403);
  assert.equal((await refused.json()).error.code, 'sign_up_closed');
  const mallory = new Browser();
  const back = await mallory.walk(await mallory.begin('start'), 'mallory');
  const victim = new Browser();
  assert.equal((await victim.fetch(back)).status, 403);
  assert.equal(await victim.session(), 401);
});
