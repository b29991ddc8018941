// Judges recorded calls with ajv, which coerces types in its own, simpler way.
import { Ajv2020 } from "ajv/dist/2020.js";
import { judgeLines } from "./lines.mjs";

const ajv = new Ajv2020({ coerceTypes: true, strict: false, allErrors: true, logger: false, validateFormats: false });
const compiled = new Map();

await judgeLines(process.argv[2], (tool, call) => {
	let validate = compiled.get(tool);
	if (validate === undefined) {
		validate = ajv.compile(tool.parameters);
		compiled.set(tool, validate);
	}
	if (!validate(call.arguments)) throw new Error(ajv.errorsText(validate.errors));
	return call.arguments;
});
