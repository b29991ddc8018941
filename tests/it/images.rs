//! `--save-images`: the images of results as files, beside the results and never over something else.

use serde_json::json;

use crate::support::Test;

fn camera(arguments: &[&str]) -> Test {
    let execute = json!({"command": ["printf", "PNG"], "output": "image/png", "stdin": "none"});
    Test::new(arguments).tool("camera", &execute)
}

#[test]
fn the_card_names_the_file() {
    let (done, folder) = camera(&["run", "--output", "text", "--save-images", "out/images"])
        .calls(&[("../a", "camera", json!({}))])
        .run_and_keep();
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    assert!(
        done.stdout
            .contains("[image/png, 3 bytes] out/images/___a.png\n"),
        "{}",
        done.stdout
    );
    let saved = std::fs::read(folder.path().join("out/images/___a.png")).unwrap();
    assert_eq!(saved, b"PNG");
}

#[test]
fn messages_stay_as_they_are_and_stderr_names_the_file() {
    let calls = [("a", "camera", json!({})), ("a", "camera", json!({}))];
    let plain = camera(&["run"]).calls(&calls).run().lines();
    let (done, folder) = camera(&["run", "--save-images", "out"])
        .calls(&calls)
        .run_and_keep();
    assert_eq!(done.code, Some(0));
    for name in ["out/a.png", "out/a-2.png"] {
        assert!(
            done.stderr
                .contains(&format!("pitool: a: image saved as {name}\n")),
            "{}",
            done.stderr
        );
        assert_eq!(std::fs::read(folder.path().join(name)).unwrap(), b"PNG");
    }
    let contents = |messages: &[serde_json::Value]| -> Vec<serde_json::Value> {
        messages
            .iter()
            .map(|message| message["content"].clone())
            .collect()
    };
    assert_eq!(contents(&done.lines()), contents(&plain));
}

#[test]
fn a_call_by_hand_saves_too() {
    let (done, folder) = camera(&["call", "camera", "--save-images", "."]).run_and_keep();
    assert_eq!(
        (done.code, done.stderr.as_str()),
        (Some(0), "pitool: call_1: image saved as ./call_1.png\n")
    );
    assert_eq!(
        std::fs::read(folder.path().join("call_1.png")).unwrap(),
        b"PNG"
    );
}

#[test]
fn a_folder_that_cannot_be_made_is_refused_before_anything_runs() {
    let (done, folder) = Test::new(["run", "--save-images", "file/images"])
        .file("file", "")
        .sh("touch", "touch ran")
        .calls(&[("a", "touch", json!({}))])
        .run_and_keep();
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr
            .starts_with("pitool: --save-images: cannot make file/images: "),
        "{}",
        done.stderr
    );
    assert!(!folder.path().join("ran").exists());
}

#[test]
fn what_cannot_be_saved_is_told_and_the_result_is_printed() {
    let image = r#"{content: [{type: "image", data: "no!", mimeType: "image/png"}]}"#;
    let done = Test::new(["run", "--save-images", "out"])
        .tool("broken", &json!({"jq": image}))
        .calls(&[("a", "broken", json!({}))])
        .run();
    assert_eq!(done.code, Some(2));
    assert_eq!(done.lines().len(), 1);
    assert!(
        done.stderr.contains("a: an image is no base64"),
        "{}",
        done.stderr
    );
}
