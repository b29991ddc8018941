// What both validating rivals share: recorded messages on stdin, a verdict per call on stdout as
// `pitool validate --report jsonl` prints them.
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const ENOUGH = 1 << 16;

/** The tools of a folder of manifests, by name. */
export function tools(folder) {
	const manifests = readdirSync(folder).map((file) => JSON.parse(readFileSync(`${folder}/${file}`, "utf8")));
	return new Map(manifests.map((tool) => [tool.name, tool]));
}

/** Judges every call of every line; `judge(tool, call)` returns the arguments to use, or throws. */
export async function judgeLines(folder, judge) {
	const known = tools(folder);
	let line = 0;
	let pending = "";
	for await (const text of createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY })) {
		line += 1;
		let number = 0;
		for (const call of JSON.parse(text).content) {
			if (call.type !== "toolCall") continue;
			number += 1;
			const verdict = { line, call: number, toolCallId: call.id, tool: call.name };
			try {
				verdict.value = judge(known.get(call.name), call);
				verdict.ok = true;
			} catch (error) {
				verdict.ok = false;
				verdict.text = error.message;
			}
			pending += `${JSON.stringify(verdict)}\n`;
		}
		if (pending.length > ENOUGH) {
			process.stdout.write(pending);
			pending = "";
		}
	}
	process.stdout.write(pending);
}
