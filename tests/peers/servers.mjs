// pitool as a client of the reference servers: list, call, progress, images, structured content, errors, cancellation.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { file, lines, message, modules, pitool, run, start } from './support.mjs';

const server = (name) => `${modules}/@modelcontextprotocol/server-${name}/dist/index.js`;
const shared = file('shared/a.txt', 'one\ntwo\n').replace('/a.txt', '');
const graph = file('graph.jsonl');
const tools = (name, servers) => file(`${name}/servers.json`, JSON.stringify({ mcpServers: servers })).replace('/servers.json', '');

const stdio = tools('stdio', {
  everything: { command: process.execPath, args: [server('everything')] },
  files: { command: process.execPath, args: [server('filesystem'), shared] },
  memory: { command: process.execPath, args: [server('memory')], env: { MEMORY_FILE_PATH: graph } },
});

/** Runs calls and gives their outcomes. */
async function outcomes(folder, ...calls) {
  const done = await run(pitool, ['run', '--tools', folder, '--output', 'outcomes'], { input: message(...calls) });
  const results = lines(done.stdout);
  assert.equal(results.length, calls.length, JSON.stringify(done));
  return results.map(({ result, isError }) => ({ ...result, isError }));
}

const text = (result) => result.content.map((block) => block.text ?? '').join('\n');

async function everything(folder) {
  const [echo, sum, wrong, image, structured, links, embedded, annotated] = await outcomes(
    folder,
    ['mcp__everything__echo', { message: 'hello' }],
    ['mcp__everything__get_sum', { a: '2', b: 40 }],
    ['mcp__everything__get_sum', { a: 'many' }],
    ['mcp__everything__get_tiny_image', {}],
    ['mcp__everything__get_structured_content', { location: 'Chicago' }],
    ['mcp__everything__get_resource_links', { count: 2 }],
    ['mcp__everything__get_resource_reference', { resourceType: 'Text', resourceId: 1 }],
    ['mcp__everything__get_annotated_message', { messageType: 'error', includeImage: true }],
  );
  assert.equal(text(echo), 'Echo: hello');
  assert.match(text(sum), /42/);
  assert.ok(wrong.isError && text(wrong).startsWith('Validation failed for tool "mcp__everything__get_sum"'));
  assert.ok(image.content.some((block) => block.type === 'image' && block.mimeType === 'image/png' && block.data));
  assert.equal(typeof structured.structuredContent.temperature, 'number');
  assert.equal(links.details.mcp.content.filter((block) => block.type === 'resource_link').length, 2);
  assert.ok(embedded.details.mcp.content.some((block) => block.type === 'resource'));
  assert.match(text(embedded), /\[Resource /);
  assert.ok(annotated.details.mcp.content.some((block) => block.annotations));
}

async function progress(folder) {
  const call = message(['mcp__everything__trigger_long_running_operation', { duration: 0.4, steps: 4 }]);
  const done = await run(pitool, ['run', '--tools', folder, '--output', 'events'], { input: call });
  const updates = lines(done.stdout).filter((event) => event.type === 'tool_execution_update');
  const seen = updates.map((update) => update.partialResult.details);
  assert.deepEqual(seen, [1, 2, 3, 4].map((step) => ({ progress: step, total: 4 })), done.stderr);
}

async function cancellation(folder) {
  const long = message(['mcp__everything__trigger_long_running_operation', { duration: 60, steps: 1000 }]);
  const { child, started, ended } = start(pitool, ['run', '--tools', folder, '--output', 'events'], {
    stdio: ['pipe', 'pipe', 'pipe'],
    sign: /tool_execution_update/,
  });
  let stdout = '';
  child.stdout.on('data', (chunk) => (stdout += chunk));
  child.stdin.end(long);
  await started;
  child.kill('SIGTERM');
  assert.equal(await ended, 143);
  assert.match(stdout, /Operation aborted/);
  const [late] = await outcomes(tools('hasty', {
    everything: { command: process.execPath, args: [server('everything')], timeout: 0.5 },
  }), ['mcp__everything__trigger_long_running_operation', { duration: 60, steps: 2 }]);
  assert.match(text(late), /Tool of MCP server "everything" timed out after 0.5 seconds/);
}

async function files() {
  const path = (name) => `${shared}/${name}`;
  const [read, outside, missing, list] = await outcomes(
    stdio,
    ['mcp__files__read_text_file', { path: path('a.txt'), head: '1' }],
    ['mcp__files__read_text_file', { path: '/etc/hostname' }],
    ['mcp__files__read_text_file', { path: path('none') }],
    ['mcp__files__list_directory', { path: shared }],
  );
  assert.equal(text(read), 'one');
  assert.deepEqual(read.structuredContent, { content: 'one' });
  assert.ok(outside.isError && /Access denied/.test(text(outside)));
  assert.ok(missing.isError && /ENOENT/.test(text(missing)));
  assert.match(text(list), /\[FILE\] a\.txt/);
  const [written] = await outcomes(stdio, ['mcp__files__write_file', { path: path('b.txt'), content: 'ä\n' }]);
  assert.equal(written.isError, false);
  assert.equal(readFileSync(path('b.txt'), 'utf8'), 'ä\n');
}

async function memory() {
  // Models send arrays as text; with extended coercion the server gets what it wants.
  const entities = JSON.stringify([{ name: 'pi', entityType: 'number', observations: ['3.14'] }]);
  const call = message(['mcp__memory__create_entities', { entities }]);
  const done = await run(pitool, ['run', '--tools', stdio, '--coerce', 'extended'], { input: call });
  assert.equal(done.code, 0, JSON.stringify(done));
  const [found] = await outcomes(stdio, ['mcp__memory__search_nodes', { query: 'pi' }]);
  assert.equal(found.structuredContent.entities[0].name, 'pi');
}

/** The same server behind a url. */
async function overHttp() {
  const port = await new Promise((resolve) => {
    const free = createServer().listen(0, '127.0.0.1', () => {
      const { port } = free.address();
      free.close(() => resolve(port));
    });
  });
  const peer = start(process.execPath, [server('everything'), 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    sign: /listening|running/i,
  });
  await peer.started;
  const folder = tools('http', { everything: { url: `http://127.0.0.1:${port}/mcp` } });
  await everything(folder);
  await progress(folder);
  peer.child.kill('SIGTERM');
  await peer.ended;
}

await everything(stdio);
await progress(stdio);
await cancellation(stdio);
await files();
await memory();
await overHttp();
console.log('peers: client of server-everything (stdio, http), server-filesystem, server-memory');
