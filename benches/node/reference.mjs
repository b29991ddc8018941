// Judges recorded calls with the reference's own validation.
import { validateToolArguments } from "@earendil-works/pi-ai";
import { judgeLines } from "./lines.mjs";

await judgeLines(process.argv[2], (tool, call) => validateToolArguments(tool, call));
