// What tests of pictures and sound have in common: small files that are made here, and what ffprobe says of those that come back.

import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Two and a half seconds, at the simulator. */
export const SPOKEN = '[[sim:ms=2500]] The gate opens.';

/** The formats of speech, each with its content type. */
export const FORMATS = {
  mp3: 'audio/mpeg',
  opus: 'audio/ogg',
  aac: 'audio/aac',
  flac: 'audio/flac',
  wav: 'audio/wav',
  pcm: 'audio/pcm',
};

/** One grey pixel. */
export const PIXEL = Buffer.from(
  '89504e470d0a1a0a0000000d4948445200000001000000010800000000 3a7e9b55 0000000a49444154789c6360000000020001 e221bc33 0000000049454e44ae426082'.replaceAll(' ', ''),
  'hex',
);

/** Silence: 16 bits, one channel, 8 kHz. */
export function wav(seconds) {
  const data = Math.round(seconds * 8000) * 2;
  const file = Buffer.alloc(44 + data);
  file.write('RIFF', 0);
  file.writeUInt32LE(36 + data, 4);
  file.write('WAVEfmt ', 8);
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(1, 22);
  file.writeUInt32LE(8000, 24);
  file.writeUInt32LE(16000, 28);
  file.writeUInt16LE(2, 32);
  file.writeUInt16LE(16, 34);
  file.write('data', 36);
  file.writeUInt32LE(data, 40);
  return file;
}

/** How long ffprobe says that a file plays. */
export async function milliseconds(bytes, form) {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-speech-'));
  try {
    const path = join(folder, `speech.${form}`);
    await writeFile(path, bytes);
    const raw = form === 'pcm' ? ['-f', 's16le', '-ar', '24000', '-ch_layout', 'mono'] : [];
    const words = ['-v', 'error', ...raw, '-show_entries', 'format=duration', '-of', 'csv=p=0', path];
    return Math.round(Number((await run('ffprobe', words)).stdout) * 1000);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export const isPng = (letters) => Buffer.from(letters, 'base64').subarray(1, 4).toString() === 'PNG';
