// Writes what pitool prints for each provider as TypeScript literals of that provider's own request types, so that
// the compiler judges them (literals are checked for unknown fields too), and parses MCP results with the SDK's schemas.
//
// Usage: node check.mjs PITOOL PROJECT WORK
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CallToolResultSchema, ListToolsResultSchema } from "@modelcontextprotocol/sdk/types.js";

const [pitool, project, work] = process.argv.slice(2);
const goldens = join(project, "tests/golden/format");

const messages = {
  anthropic: "Anthropic.MessageParam[]",
  openai: "OpenAI.ChatCompletionMessageParam[]",
  "openai-responses": "OpenAI.Responses.ResponseInputItem[]",
  gemini: "Content[]",
};
const tools = {
  anthropic: "Anthropic.ToolUnion[]",
  openai: "OpenAI.ChatCompletionTool[]",
  "openai-responses": "OpenAI.Responses.Tool[]",
  gemini: "Tool[]",
};
// What only their user can get wrong stays wrong in the transcript: the arguments are no object there.
const badInput = (name) => name === "malformed-arguments" || name === "missing-ids";

let checks = 0;
let failures = 0;
const source = [
  'import type Anthropic from "@anthropic-ai/sdk";',
  'import type OpenAI from "openai";',
  'import { Language, Outcome, type Content, type Tool } from "@google/genai";',
];
// TypeScript does not take the text of an enum's member for the member.
const members = { '"PYTHON"': "Language.PYTHON", '"OUTCOME_OK"': "Outcome.OUTCOME_OK" };
function literal(type, value, what) {
  let text = JSON.stringify(value);
  for (const [member, name] of Object.entries(members)) text = text.replaceAll(member, name);
  source.push(`// ${what}`, `export const check${checks++}: ${type} = ${text};`);
}
function parse(schema, value, what) {
  checks++;
  const result = schema.safeParse(value);
  if (!result.success) {
    failures++;
    console.error(`${what}: ${result.error}`);
  }
}
function run(args, input) {
  try {
    return execFileSync(pitool, args, { input, encoding: "utf8", stdio: ["pipe", "pipe", "ignore"] });
  } catch (error) {
    // Exit 1 says that some result is an error, or that a name is refused; what was printed counts.
    if (error.status === 1) return error.stdout;
    throw error;
  }
}
const lines = (text) => text.split("\n").filter(Boolean).map((line) => JSON.parse(line));

const toolsFolder = join(work, "tools.d");
mkdirSync(toolsFolder, { recursive: true });
for (const [name, execute] of Object.entries({
  get_weather: { jq: '{content: [{type: "text", text: "18 °C"}]}' },
  screenshot: { jq: '{content: [{type: "text", text: "page"}, {type: "image", data: "aW1n", mimeType: "image/png"}]}' },
  explode: { jq: 'error("boom")' },
  explode_with_image: { jq: '{content: [{type: "image", data: "aW1n", mimeType: "image/png"}], isError: true}' },
})) {
  const parameters = { type: "object", properties: { city: { type: "string" }, url: { type: "string", format: "uri" } } };
  const manifest = { name, description: `Does ${name}`, parameters, execute };
  writeFileSync(join(toolsFolder, `${name}.json`), JSON.stringify(manifest));
}

for (const [format, type] of Object.entries(messages)) {
  for (const file of readdirSync(join(goldens, format)).sort()) {
    const name = file.replace(".json", "");
    const golden = JSON.parse(readFileSync(join(goldens, format, file), "utf8"));
    literal(type, golden.answers, `${format}/${name}: answers`);
    if (!badInput(name)) literal(type, golden.transcript.flat(), `${format}/${name}: transcript`);
    const input = JSON.stringify(golden.input);
    const printed = run(["run", "--tools", toolsFolder], input);
    literal(type, lines(printed), `${format}/${name}: pitool run`);
    for (const to of Object.keys(messages)) {
      const converted = lines(run(["run", "--tools", toolsFolder, "--to", to], input));
      literal(messages[to], converted, `${format}/${name}: pitool run --to ${to}`);
    }
  }
}
for (const file of readdirSync(join(goldens, "mcp")).sort()) {
  const golden = JSON.parse(readFileSync(join(goldens, "mcp", file), "utf8"));
  const printed = run(["run", "--tools", toolsFolder], JSON.stringify(golden.input));
  for (const response of [...golden.answers.flat(), ...lines(printed).flat()]) {
    parse(CallToolResultSchema, response.result, `mcp/${file}`);
  }
}
for (const folder of [toolsFolder, join(project, "tools.d")]) {
  for (const [format, type] of Object.entries(tools)) {
    for (const strict of [[], ["--strict"]]) {
      if (strict.length && !format.startsWith("openai") && format !== "anthropic") continue;
      const printed = run(["declare", "--tools", folder, "--for", format, ...strict], "");
      literal(type, JSON.parse(printed), `${folder}: declare --for ${format} ${strict}`);
    }
  }
  const listed = JSON.parse(run(["declare", "--tools", folder, "--for", "mcp"], ""));
  parse(ListToolsResultSchema, { tools: listed }, `${folder}: declare --for mcp`);
}

writeFileSync(join(work, "check.ts"), source.join("\n") + "\n");
if (failures > 0) process.exit(1);
console.log(`${checks} values for the compiler and the schemas`);
