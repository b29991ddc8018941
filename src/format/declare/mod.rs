//! Tools in the words of an API: what goes into the `tools` field of a request.
//!
//! A schema that an API cannot take as it is is adapted. Where that keeps the meaning nothing is said; where the model
//! is told less than the schema says, and where the API would refuse the tool, a [`Finding`] says so. Calls are
//! validated against the schema as it was written either way. Names are never adapted.

mod gemini;
mod modern;
mod names;
mod root;
mod strict;
mod strict_anthropic;
mod walk;

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::json;
use crate::tool::Tool;

use self::strict::Reason;
use self::strict_anthropic::Budget;
use super::Format;
use super::pi::to_value;

/// Something that an API does not take as the manifest says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The tool's name.
    pub tool: String,
    /// JSON Pointer into `parameters`; empty for the whole or for the tool itself.
    pub path: String,
    /// The rule, in a word that scripts can rely on.
    pub rule: &'static str,
    /// What is wrong and what was done about it.
    pub message: String,
    /// How bad it is.
    pub severity: Severity,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// The API refuses the tool.
    Error,
    /// The model is told less than the schema says.
    Note,
}

/// Whether a model shall be held to the schemas, by an API that can do so (OpenAI's and Anthropic's).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strictness {
    /// Only for tools whose `constrainedSampling` asks for it.
    #[default]
    AsDeclared,
    /// For every tool whose schema allows it.
    WherePossible,
}

/// Declarations for an API.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    /// The value of the request's `tools` (of the result of `tools/list` for MCP).
    pub tools: Value,
    /// What the API does not take as it is, in the order of the tools.
    pub findings: Vec<Finding>,
}

/// Declares tools for an API, in their order.
pub fn declare(tools: &[Arc<Tool>], format: Format, strictness: Strictness) -> Declared {
    let mut findings = Vec::new();
    let mut budget = Budget::default();
    let declared: Vec<Value> = tools
        .iter()
        .map(|tool| {
            let mut report = Report::new(tool.name());
            names::check(&mut report, format);
            let declared = declare_one(tool, format, strictness, &mut budget, &mut report);
            findings.extend(report.findings);
            declared
        })
        .collect();
    let tools = if format == Format::Gemini && !declared.is_empty() {
        json!([{"functionDeclarations": declared}])
    } else {
        declared.into()
    };
    Declared { tools, findings }
}

/// Collects the findings of one tool.
struct Report {
    tool: String,
    findings: Vec<Finding>,
}

impl Report {
    fn new(tool: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            findings: Vec::new(),
        }
    }

    fn error(&mut self, rule: &'static str, path: &str, message: impl Into<String>) {
        self.add(Severity::Error, rule, path, message.into());
    }

    fn note(&mut self, rule: &'static str, path: &str, message: impl Into<String>) {
        self.add(Severity::Note, rule, path, message.into());
    }

    /// What a strict schema does not say.
    fn left_out(&mut self, reasons: Vec<Reason>) {
        for reason in reasons {
            self.note("strict-keyword", &reason.path, reason.message);
        }
    }

    /// Why there is no strict schema.
    fn not_strict(&mut self, sampling: Sampling, reasons: Vec<Reason>) {
        let severity = if sampling == Sampling::RequireStrict {
            Severity::Error
        } else {
            Severity::Note
        };
        for reason in reasons {
            self.add(severity, "not-strict", &reason.path, reason.message);
        }
    }

    fn add(&mut self, severity: Severity, rule: &'static str, path: &str, message: String) {
        let finding = Finding {
            tool: self.tool.clone(),
            path: path.to_owned(),
            rule,
            message,
            severity,
        };
        // A node that is reached twice is reported once.
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }
}

fn declare_one(
    tool: &Tool,
    format: Format,
    strictness: Strictness,
    budget: &mut Budget,
    report: &mut Report,
) -> Value {
    match format {
        Format::Pi => to_value(&tool.declaration),
        Format::Anthropic => {
            let schema = root::without_unions(modern_parameters(tool, report), report);
            names::check_properties(&schema, report);
            anthropic_tool(tool, schema, strictness, budget, report)
        }
        Format::Openai => {
            let (parameters, is_strict) = openai_parameters(tool, strictness, report);
            let mut function = declaration(tool, "parameters", parameters);
            if is_strict {
                function["strict"] = true.into();
            }
            json!({"type": "function", "function": function})
        }
        Format::OpenaiResponses => {
            let (parameters, is_strict) = openai_parameters(tool, strictness, report);
            let mut declared = Map::new();
            declared.insert("type".to_owned(), "function".into());
            let function = declaration(tool, "parameters", parameters);
            declared.extend(function.as_object().cloned().unwrap_or_default());
            // Absent would mean strict here.
            declared.insert("strict".to_owned(), is_strict.into());
            Value::Object(declared)
        }
        Format::Gemini => {
            let schema = root::without_unions(modern_parameters(tool, report), report);
            declaration(tool, "parametersJsonSchema", gemini::subset(schema, report))
        }
        Format::Mcp => mcp_tool(tool, report),
    }
}

/// `name`, `description` and the schema under the API's name for it.
fn declaration(tool: &Tool, schema_key: &str, schema: Value) -> Value {
    let mut declared = Map::new();
    declared.insert("name".to_owned(), tool.name().into());
    let description = tool.declaration.description.as_str();
    declared.insert("description".to_owned(), description.into());
    declared.insert(schema_key.to_owned(), schema);
    Value::Object(declared)
}

/// The tool for Anthropic, strict if that is wanted and possible.
fn anthropic_tool(
    tool: &Tool,
    schema: Value,
    strictness: Strictness,
    budget: &mut Budget,
    report: &mut Report,
) -> Value {
    let sampling = sampling(tool);
    if !sampling.wants_strict(strictness) {
        return declaration(tool, "input_schema", schema);
    }
    match strict_anthropic::strict(&schema, budget) {
        Ok((schema, left_out)) => {
            report.left_out(left_out);
            let mut declared = declaration(tool, "input_schema", schema);
            declared["strict"] = true.into();
            declared
        }
        Err(reasons) => {
            report.not_strict(sampling, reasons);
            declaration(tool, "input_schema", schema)
        }
    }
}

/// The tool as MCP's `tools/list` shows it.
fn mcp_tool(tool: &Tool, report: &mut Report) -> Value {
    let schema = root::as_object(tool.declaration.parameters.read().into_owned(), report);
    let mut declared = declaration(tool, "inputSchema", schema);
    if let Some(label) = &tool.label {
        declared["title"] = label.as_str().into();
    }
    if let Some(output) = &tool.output_schema {
        let output = output.read();
        if output.get("type").and_then(Value::as_str) == Some("object") {
            declared["outputSchema"] = output.into_owned();
        } else {
            let message = "outputSchema has to have \"type\": \"object\" and was left out";
            report.note("output-schema", "", message);
        }
    }
    declared
}

/// Schemas that nest deeper are not worked with; no API takes them.
const MAX_DEPTH: usize = 128;

/// The parameters in the words of the current JSON Schema.
fn modern_parameters(tool: &Tool, report: &mut Report) -> Value {
    let parameters = tool.declaration.parameters.read();
    if json::depth(&parameters) > MAX_DEPTH {
        let message = format!("the schema nests more than {MAX_DEPTH} levels deep");
        report.error("too-deep", "", message);
        return json!({"type": "object"});
    }
    root::as_object(modern::modernise(parameters.into_owned()), report)
}

/// What a tool's `constrainedSampling` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sampling {
    Unsaid,
    Never,
    PreferStrict,
    RequireStrict,
    Grammar,
}

impl Sampling {
    fn wants_strict(self, strictness: Strictness) -> bool {
        match self {
            Self::Never => false,
            Self::PreferStrict | Self::RequireStrict => true,
            Self::Unsaid | Self::Grammar => strictness == Strictness::WherePossible,
        }
    }
}

fn sampling(tool: &Tool) -> Sampling {
    let config = tool.declaration.constrained_sampling.as_ref();
    let field = |key| config.and_then(|config| config.get(key)?.as_str());
    match (config, field("type"), field("strict")) {
        (Some(Value::Bool(false)), ..) => Sampling::Never,
        (_, Some("json_schema"), Some("require")) => Sampling::RequireStrict,
        (_, Some("json_schema"), _) => Sampling::PreferStrict,
        (_, Some("grammar"), _) => Sampling::Grammar,
        _ => Sampling::Unsaid,
    }
}

/// The parameters for OpenAI, and whether they are strict.
fn openai_parameters(tool: &Tool, strictness: Strictness, report: &mut Report) -> (Value, bool) {
    let sampling = sampling(tool);
    if sampling == Sampling::Grammar {
        let message = "a grammar is for tools that take free text; declared as a function";
        report.note("constrained-sampling", "", message);
    }
    let schema = root::without_unions(modern_parameters(tool, report), report);
    if sampling.wants_strict(strictness) {
        match strict::strict(
            &schema,
            tool.coerce,
            root::reach(&tool.declaration.parameters.read()),
        ) {
            Ok((schema, left_out)) => {
                report.left_out(left_out);
                return (schema, true);
            }
            Err(reasons) => report.not_strict(sampling, reasons),
        }
    }
    (root::with_properties(schema), false)
}

#[cfg(test)]
mod tests;
