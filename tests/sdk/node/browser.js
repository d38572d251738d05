// A real Chromium without a window, driven over the DevTools protocol. Nothing but a socket and JSON is needed for that, so there
// is no package for it. Each page has cookies of its own and a virtual authenticator, as WebDriver has one.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import WebSocket from 'ws';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];
// What would hang otherwise; minutes, because the machine may be busy.
const HANG = 180_000;

/** The executable: what TOLLGATE_CHROMIUM names, or one that is installed; `undefined` where there is none. */
export function chromium() {
  if (process.env.TOLLGATE_CHROMIUM) return process.env.TOLLGATE_CHROMIUM;
  const folders = (process.env.PATH ?? '').split(delimiter);
  const all = folders.flatMap((folder) => NAMES.map((name) => join(folder, name)));
  return all.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

export class Chromium {
  #asked = new Map();
  #number = 0;

  static async start() {
    const browser = new Chromium();
    browser.folder = await mkdtemp(join(tmpdir(), 'tollgate-browser-'));
    const options = [
      '--headless=new', '--remote-debugging-port=0', `--user-data-dir=${browser.folder}`, '--no-first-run', '--disable-gpu',
      '--disable-dev-shm-usage', '--disable-background-networking', '--disable-component-update', '--disable-sync',
      // The sandbox does not run as root; all it opens is our own gateway.
      ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
    ];
    const env = { ...process.env, HOME: browser.folder };
    browser.process = spawn(chromium(), [...options, 'about:blank'], { stdio: ['ignore', 'ignore', 'pipe'], env, detached: true });
    browser.ended = new Promise((done) => browser.process.once('exit', done));
    let words = '';
    const address = await new Promise((done, fail) => {
      const late = setTimeout(() => fail(new Error(`Chromium does not listen: ${words}`)), HANG);
      browser.process.once('error', fail);
      browser.ended.then(() => fail(new Error(`Chromium ended at once: ${words}`)));
      createInterface({ input: browser.process.stderr }).on('line', (line) => {
        words += `${line}\n`;
        const found = line.match(/^DevTools listening on (ws:\S+)/);
        if (found) done(found[1], clearTimeout(late));
      });
    });
    browser.socket = new WebSocket(address, { perMessageDeflate: false });
    await new Promise((done, fail) => browser.socket.once('open', done).once('error', fail));
    browser.socket.on('message', (text) => {
      const { id, result, error } = JSON.parse(text);
      const asked = browser.#asked.get(id);
      if (!asked) return;
      browser.#asked.delete(id);
      if (error) asked.fail(new Error(`${asked.method}: ${error.message}`));
      else asked.done(result);
    });
    return browser;
  }

  send(method, params = {}, sessionId = undefined) {
    const id = ++this.#number;
    return new Promise((done, fail) => {
      const late = setTimeout(() => fail(new Error(`${method} was not answered`)), HANG);
      const end = (end) => (value) => end(value, clearTimeout(late));
      this.#asked.set(id, { method, done: end(done), fail: end(fail) });
      this.socket.send(JSON.stringify({ id, method, params, sessionId }));
    });
  }

  /** A page with cookies of its own. */
  async page() {
    const { browserContextId } = await this.send('Target.createBrowserContext');
    const { targetId } = await this.send('Target.createTarget', { url: 'about:blank', browserContextId });
    const { sessionId } = await this.send('Target.attachToTarget', { targetId, flatten: true });
    const page = new Page(this, sessionId);
    await page.send('WebAuthn.enable', { enableUI: false });
    return page;
  }

  async stop() {
    await this.send('Browser.close').catch(() => {});
    await Promise.race([this.ended, new Promise((done) => setTimeout(done, 5_000).unref())]);
    try {
      // Its helpers are of its group.
      process.kill(-this.process.pid, 'SIGKILL');
    } catch {
      // They have ended.
    }
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

export class Page {
  constructor(browser, session) {
    [this.browser, this.session] = [browser, session];
  }

  send(method, params) {
    return this.browser.send(method, params, this.session);
  }

  /** Opens an address, and defines the functions of a script there. */
  async open(url, script = '') {
    const { errorText } = await this.send('Page.navigate', { url });
    assert.equal(errorText, undefined, url);
    // The document that answers is that of the address, once it is there.
    for (;;) {
      const { result } = await this.send('Runtime.evaluate', { expression: '[location.href, document.readyState].join(" ")' });
      if (result.value === `${url} complete`) break;
    }
    await this.send('Runtime.evaluate', { expression: script });
  }

  /** What an expression comes to, as somebody who clicks would have it; an error is thrown with its name. */
  async run(expression) {
    const asked = { expression, awaitPromise: true, returnByValue: true, userGesture: true };
    const { result, exceptionDetails } = await this.send('Runtime.evaluate', asked);
    if (!exceptionDetails) return result.value;
    const words = exceptionDetails.exception?.description ?? exceptionDetails.text;
    throw Object.assign(new Error(words), { name: words.split(':')[0] });
  }

  /** A device that belongs to this page: it asks nobody and says that it did. */
  async device(more = {}) {
    const options = {
      protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true, isUserVerified: true,
      automaticPresenceSimulation: true, ...more,
    };
    return (await this.send('WebAuthn.addVirtualAuthenticator', { options })).authenticatorId;
  }

  async passkeys(authenticatorId) {
    return (await this.send('WebAuthn.getCredentials', { authenticatorId })).credentials;
  }

  async cookies(url) {
    return (await this.send('Network.getCookies', { urls: [url] })).cookies;
  }
}
