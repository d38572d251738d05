// A client of its own process, because the certificates that Node trusts are read when it starts (NODE_EXTRA_CA_CERTS). What it is to
// do comes as JSON in its only argument, what came of it goes to standard output, a line of JSON each.

import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import { OpenAIRealtimeWebSocket } from 'openai/realtime/websocket';
import { WebSocket } from 'ws';

// Node 20 has none of its own; a browser and later versions do.
globalThis.WebSocket ??= WebSocket;

const task = JSON.parse(process.argv[2]);
const client = new OpenAI({ apiKey: task.apiKey, baseURL: task.baseURL, maxRetries: 0, timeout: 30_000 });
const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

/** A session, as Node opens it or as a browser does. */
function open() {
  const session = task.browser
    ? new OpenAIRealtimeWebSocket({ model: task.model }, client)
    : new OpenAIRealtimeWS({ model: task.model }, client);
  session.errors = [];
  session.on('error', (error) => session.errors.push(error.error?.code ?? error.message));
  const closed = ({ code, reason }) => ({ code, reason: `${reason}` });
  session.closed = new Promise((done) => session.socket.addEventListener('close', (event) => done(closed(event))));
  return session;
}

const next = (session, type) =>
  Promise.race([
    new Promise((done) => session.once(type, done)),
    session.closed.then((end) => Promise.reject(new Error(`closed: ${JSON.stringify([end, session.errors])}`))),
  ]);

const jobs = {
  async secret() {
    say(await client.realtime.clientSecrets.create({ session: task.session, expires_after: { anchor: 'created_at', seconds: 60 } }));
  },
  async talk() {
    const session = open();
    // Both may come in one piece: whoever begins to listen for the second after the first has missed it.
    const [, updated] = await Promise.all([next(session, 'session.created'), task.configured && next(session, 'session.updated')]);
    const shown = updated?.session;
    const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello!' }] };
    session.send({ type: 'conversation.item.create', item });
    session.send({ type: 'response.create', response: { output_modalities: ['text'] } });
    let text = '';
    session.on('response.output_text.delta', (event) => (text += event.delta));
    const { response } = await next(session, 'response.done');
    session.close();
    say({ text, status: response.status, usage: response.usage, shown, end: await session.closed });
  },
  async refused() {
    const session = open();
    say({ end: await session.closed, errors: session.errors });
  },
  async wait() {
    const session = open();
    await next(session, 'session.created');
    say('open');
    say({ end: await session.closed, errors: session.errors });
  },
};
await jobs[task.job]();
