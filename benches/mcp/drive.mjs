// Calls `echo` through `pitool serve` and through the same tool written with the TypeScript SDK, in one run and in turns,
// so that both meet the same machine: latency one call at a time, throughput with 64 in flight. JSON on stdout.
//
//   drive.mjs PITOOL TOOLS [CALLS] [ROUNDS]
import { spawn } from 'node:child_process';

const [pitool, tools, calls = '2000', rounds = '7'] = process.argv.slice(2);
const IN_FLIGHT = 64;

/** A server that has answered the handshake; `ask` resolves with the answer. */
async function open(command, args) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting = new Map();
  let rest = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      const message = JSON.parse(line);
      waiting.get(message.id)?.(message);
      waiting.delete(message.id);
    }
  });
  child.on('exit', (code) => code && process.exit(1));
  let id = 0;
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const ask = (method, params) =>
    new Promise((resolve) => {
      waiting.set(++id, resolve);
      send({ id, method, params });
    });
  const clientInfo = { name: 'bench', version: '1' };
  await ask('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
  send({ method: 'notifications/initialized' });
  return { ask, close: () => child.stdin.end() };
}

async function call({ ask }, n) {
  const value = `value ${n}`;
  const answer = await ask('tools/call', { name: 'echo', arguments: { value } });
  if (answer.result?.content?.[0]?.text !== value) throw new Error(JSON.stringify(answer));
}

/** Microseconds of each of `count` calls, one after the other. */
async function oneByOne(server, count) {
  const times = [];
  for (let n = 0; n < count; n++) {
    const begun = process.hrtime.bigint();
    await call(server, n);
    times.push(Number(process.hrtime.bigint() - begun) / 1000);
  }
  return times;
}

/** Calls per second with many in flight. */
async function atOnce(server, count) {
  let next = 0;
  const worker = async () => {
    while (next < count) await call(server, next++);
  };
  const begun = process.hrtime.bigint();
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  return count / (Number(process.hrtime.bigint() - begun) / 1e9);
}

const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
const round = (number) => Math.round(number * 10) / 10;

const servers = {
  pitool: await open(pitool, ['serve', '--tools', tools]),
  typescript: await open(process.execPath, [new URL('server.mjs', import.meta.url).pathname]),
};
const seen = {};
for (const [name, server] of Object.entries(servers)) {
  seen[name] = { times: [], rates: [] };
  await oneByOne(server, 500);
  await atOnce(server, 1000);
}
for (let turn = 0; turn < Number(rounds); turn++) {
  for (const [name, server] of Object.entries(servers)) {
    seen[name].times.push(...(await oneByOne(server, Number(calls))));
    seen[name].rates.push(await atOnce(server, Number(calls)));
  }
}
const summary = ({ times, rates }) => {
  times.sort((a, b) => a - b);
  rates.sort((a, b) => a - b);
  return {
    medianMicros: round(quantile(times, 0.5)),
    p99Micros: round(quantile(times, 0.99)),
    callsPerSecond: Math.round(quantile(rates, 0.5)),
  };
};
const figures = Object.fromEntries(Object.entries(seen).map(([name, each]) => [name, summary(each)]));
console.log(JSON.stringify({ figure: 'mcp-echo', calls: Number(calls), rounds: Number(rounds), inFlight: IN_FLIGHT, ...figures }));
for (const server of Object.values(servers)) server.close();
