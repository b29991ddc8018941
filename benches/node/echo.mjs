// One call of an echo tool through the reference: a message on stdin, its result on stdout.
import { readFileSync } from "node:fs";
import { runToolCall } from "@earendil-works/pi-agent-core";

const echo = {
	name: "echo",
	label: "Echo",
	description: "Echo one value",
	parameters: {
		type: "object",
		properties: { value: { type: "string" } },
		required: ["value"],
	},
	execute: async (_id, { value }) => ({ content: [{ type: "text", text: value }], details: { source: "echo" } }),
};

const assistantMessage = JSON.parse(readFileSync(0, "utf8"));
for (const toolCall of assistantMessage.content.filter((block) => block.type === "toolCall")) {
	const context = { systemPrompt: "", messages: [assistantMessage], tools: [echo] };
	const { result, isError } = await runToolCall(toolCall, { tools: [echo], assistantMessage, context });
	const { content, details } = result;
	console.log(
		JSON.stringify({
			role: "toolResult",
			toolCallId: toolCall.id,
			toolName: toolCall.name,
			content,
			details,
			isError,
			timestamp: Date.now(),
		}),
	);
}
