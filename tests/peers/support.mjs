// What both scripts need: where things are, pitool run to its end, and a folder that does not stay.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const pitool = process.env.PITOOL;
export const modules = join(process.cwd(), 'node_modules');
export const here = new URL('.', import.meta.url).pathname;

const folder = mkdtempSync(join(tmpdir(), 'pitool-peers-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));

/** A file in the folder; its path. */
export function file(name, content) {
  const path = join(folder, name);
  mkdirSync(join(path, '..'), { recursive: true });
  if (content !== undefined) writeFileSync(path, content);
  return path;
}

/** Starts a program; `started` resolves when `sign` matches its output. */
export function start(command, args, { sign, ...options } = {}) {
  const child = spawn(command, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], ...options });
  const ended = new Promise((resolve) => child.on('close', resolve));
  process.on('exit', () => child.kill('SIGKILL'));
  let told = '';
  const started = new Promise((resolve, reject) => {
    const hear = (chunk) => {
      const match = sign?.exec((told += chunk));
      if (match) resolve(match);
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    ended.then(() => reject(new Error(`${command} ended: ${told}`)));
  });
  started.catch(() => {});
  return { child, started, ended };
}

/** Runs a program to its end, `input` on stdin: code, stdout, stderr. */
export async function run(command, args, { input = '', ...options } = {}) {
  const child = spawn(command, args, { cwd: folder, ...options });
  const out = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr']) {
    child[stream].setEncoding('utf8').on('data', (chunk) => (out[stream] += chunk));
  }
  child.stdin.on('error', () => {}).end(input);
  const code = await new Promise((resolve) => child.on('close', resolve));
  return { code, ...out };
}

export const lines = (text) => text.split('\n').filter(Boolean).map((line) => JSON.parse(line));

/** An assistant message with calls, each `[name, arguments]`. */
export function message(...calls) {
  const content = calls.map(([name, args], n) => ({ type: 'toolCall', id: `c${n}`, name, arguments: args }));
  return JSON.stringify({ role: 'assistant', content, stopReason: 'toolUse' });
}
