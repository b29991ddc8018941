//! `pitool declare`: the tools folder in the words of each API.

use serde_json::{Value, json};

use crate::support::Test;

fn manifest(name: &str, parameters: &Value) -> Value {
    json!({"name": name, "description": "Does it", "parameters": parameters, "execute": {"jq": "{content: []}"}})
}

fn text_property() -> Value {
    json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})
}

fn printed(test: Test) -> Value {
    let done = test.run().code(0).quiet();
    serde_json::from_str(&done.stdout).unwrap()
}

#[test]
fn tools_are_declared_in_the_order_of_their_manifests() {
    let test = Test::new(["declare"])
        .manifest("2-b", &manifest("b", &text_property()))
        .manifest("1-a", &manifest("a", &text_property()));
    let declaration =
        |name| json!({"name": name, "description": "Does it", "parameters": text_property()});
    assert_eq!(printed(test), json!([declaration("a"), declaration("b")]));
}

#[test]
fn each_api_has_its_own_form() {
    let declared = |format| {
        let test =
            Test::new(["declare", "--for", format]).manifest("a", &manifest("a", &text_property()));
        printed(test)
    };
    assert_eq!(declared("anthropic")[0]["input_schema"], text_property());
    assert_eq!(
        declared("openai")[0]["function"]["parameters"],
        text_property()
    );
    assert_eq!(
        declared("openai-responses")[0]["parameters"],
        text_property()
    );
    assert_eq!(
        declared("gemini")[0]["functionDeclarations"][0]["parametersJsonSchema"],
        text_property()
    );
    assert_eq!(declared("mcp")[0]["inputSchema"], text_property());
}

#[test]
fn what_the_api_is_not_told_is_a_note() {
    let parameters =
        json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^x"}}});
    let done = Test::new(["declare", "--for", "gemini"])
        .manifest("a", &manifest("a", &parameters))
        .run()
        .code(0);
    assert_eq!(
        done.stderr,
        "pitool: note: a: /properties/a/pattern: gemini does not read pattern; it was left out [keyword]\n"
    );
}

#[test]
fn a_name_that_the_api_refuses_fails_and_is_printed_as_it_is() {
    let done = Test::new(["declare", "--for", "openai"])
        .manifest("a", &manifest("a.b", &text_property()))
        .run()
        .code(1);
    assert_eq!(
        done.stderr,
        "pitool: error: a.b: openai refuses '.' in the name of a tool [tool-name]\n"
    );
    assert!(done.stdout.contains("\"a.b\""), "{}", done.stdout);
}

#[test]
fn strict_says_where_it_is_not_possible() {
    let open =
        json!({"type": "object", "properties": {"m": {"type": "object"}}, "required": ["m"]});
    let done = Test::new(["declare", "--for", "openai", "--strict"])
        .manifest("a", &manifest("a", &text_property()))
        .manifest("b", &manifest("b", &open))
        .run()
        .code(0);
    let declared: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(declared[0]["function"]["strict"], true);
    assert_eq!(declared[1]["function"].get("strict"), None);
    assert_eq!(
        done.stderr,
        "pitool: note: b: /properties/m: strict schemas have to say the properties of an object [not-strict]\n"
    );
}

#[test]
fn strict_is_for_apis_that_can_be_strict() {
    let done = Test::new(["declare", "--for", "gemini", "--strict"])
        .run()
        .code(2);
    assert_eq!(
        done.stderr,
        "pitool: --strict is for anthropic, openai and openai-responses, not for gemini\n"
    );
}

#[test]
fn a_folder_that_does_not_load_declares_nothing() {
    let done = Test::new(["declare"])
        .file("tools.d/a.json", "{")
        .run()
        .code(2);
    assert_eq!(done.stdout, "");
    assert!(done.stderr.contains("tools.d/a.json"), "{}", done.stderr);
}
