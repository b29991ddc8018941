// pitool as a server of the Inspector, and in both roles under the conformance suite.
import assert from 'node:assert/strict';
import { chmodSync } from 'node:fs';
import { file, here, modules, pitool, run, start } from './support.mjs';

const fixtures = `${here}conformance/tools.d`;
const baseline = `${here}conformance/expected-failures.yml`;
const inspector = `${modules}/@modelcontextprotocol/inspector/clients/launcher/build/index.js`;
const suite = `${modules}/@modelcontextprotocol/conformance/dist/index.js`;

async function inspect(target, ...args) {
  const done = await run(process.execPath, [inspector, '--cli', ...target, ...args]);
  assert.ok(done.stdout, done.stderr);
  return JSON.parse(done.stdout);
}

async function inspected(target) {
  const { tools } = await inspect(target, '--method', 'tools/list');
  const names = tools.map((tool) => tool.name);
  assert.ok(names.includes('test_simple_text') && names.includes('json_schema_2020_12_tool'), names.join());
  const called = await inspect(target, '--method', 'tools/call', '--tool-name', 'test_image_content');
  assert.equal(called.content[0].mimeType, 'image/png');
  const failed = await inspect(target, '--method', 'tools/call', '--tool-name', 'test_error_handling');
  assert.equal(failed.isError, true);
}

/** Runs scenarios of the suite; what fails must stand in the baseline and what stands there must fail. */
async function conforms(role, ...args) {
  const done = await run(process.execPath, [suite, role, ...args, '--expected-failures', baseline]);
  assert.equal(done.code, 0, `conformance ${role} ${args.join(' ')}\n${done.stdout}\n${done.stderr}`);
}

const served = start(pitool, ['serve', '--http', '0', '--tools', fixtures], { sign: /serving MCP on (\S+)/ });
const [, url] = await served.started;
await inspected([pitool, 'serve', '--tools', fixtures]);
await inspected([url]);
await conforms('server', '--url', url, '--suite', 'all');
served.child.kill('SIGTERM');
assert.equal(await served.ended, 143);

// The suite starts its client with the address as the last argument.
const client = file('client', `#!/bin/sh
set -eu
tool=$1 arguments=$2 url=$3
tools=$(mktemp -d)
trap 'rm -r "$tools"' EXIT
printf '{"mcpServers":{"c":{"url":"%s"}}}' "$url" > "$tools/c.json"
printf '{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"mcp__c__%s","arguments":%s}]}' "$tool" "$arguments" |
    "${pitool}" run --tools "$tools"
`);
chmodSync(client, 0o755);
const scenarios = [
  // It has no tools: that the call is answered "not found" is all there is to it.
  ['initialize', 'none', '{}'],
  ['tools_call', 'add_numbers', '{"a":2,"b":3}'],
  ['sse-retry', 'test_reconnection', '{}'],
  ['elicitation-sep1034-client-defaults', 'test_client_elicitation_defaults', '{}'],
];
for (const [scenario, tool, args] of scenarios) {
  await conforms('client', '--command', `${client} ${tool} '${args}'`, '--scenario', scenario);
}
console.log('peers: server of the Inspector (stdio, http); conformance, server and client');
