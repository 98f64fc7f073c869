//! Both forms of a plan are read back as it was, and whatever else is read is named.

use crate::{golden, plan};
use serde_json::{Value, json};
use trainc_backend::{plan_to_json, plan_to_protobuf, read_plan};

/// The one diagnostic of a file, as shown.
fn refused(bytes: &[u8]) -> String {
    let diagnostics = read_plan(bytes, "plan.json").expect_err("it is no good plan");
    assert_eq!(diagnostics.len(), 1);
    diagnostics[0].to_string()
}

/// The diagnostic of the plan with one value set in its JSON form.
fn edited(pointer: &str, value: Value) -> String {
    let mut document = serde_json::to_value(plan()).unwrap();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    document.pointer_mut(parent).unwrap()[key] = value;
    refused(serde_json::to_string_pretty(&document).unwrap().as_bytes())
}

#[test]
fn json_reads_back_as_it_was() {
    let plan = plan();
    assert_eq!(read_plan(plan_to_json(&plan).as_bytes(), "plan.json"), Ok(plan));
}

#[test]
fn protobuf_reads_back_as_it_was() {
    let plan = plan();
    let bytes = plan_to_protobuf(&plan);
    assert_eq!(read_plan(&bytes, "plan.pb"), Ok(plan.clone()));
    assert_eq!(plan_to_json(&read_plan(&bytes, "plan.pb").unwrap()), plan_to_json(&plan));
    assert!(bytes.len() * 2 < plan_to_json(&plan).len());
}

#[test]
fn json_is_laid_out_in_lines() {
    golden("two_stages.json", &plan_to_json(&plan()));
}

#[test]
fn json_is_what_serde_makes_of_it() {
    let text = plan_to_json(&plan());
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), serde_json::to_value(plan()).unwrap());
}

#[test]
fn what_is_no_plan_is_refused() {
    for bytes in [&b""[..], b"hello", b"\x08\x07\x12\x05torch", b"[]", b"{ nonsense", b"{}", b"{\"format\": \"1\"}"] {
        let text = refused(bytes);
        assert!(text.starts_with("error[E0701]: cannot read the plan `plan.json`: it is no plan: "), "{text}");
    }
}

/// Every beginning of a file is refused; where it says what it is, it is said to end too early.
#[test]
fn what_is_cut_off_is_refused() {
    let json = plan_to_json(&plan()).trim_end().to_owned();
    for end in (1..json.len()).step_by(97).chain([json.len() - 1]) {
        let text = refused(&json.as_bytes()[..end]);
        assert!(text.starts_with("error[E0702]") && text.ends_with("the file ends too early"), "{end}: {text}");
    }
    let pb = plan_to_protobuf(&plan());
    for end in (20..pb.len()).chain([pb.len() - 1]) {
        // Where a field of the plan ends, what follows is missing instead.
        let text = refused(&pb[..end]);
        assert!(text.starts_with("error[E0702]") || text.starts_with("error[E0704]"), "{end}: {text}");
    }
    let text = refused(&pb[..pb.len() - 1]);
    assert!(text.starts_with("error[E0702]"), "{text}");
}

#[test]
fn newer_formats_are_refused() {
    let newer = "error[E0703]: cannot read the plan `plan.json`: \
                 it was written by a newer trainc, format 2; this one reads up to 1";
    // A newer format may have anything in it.
    assert_eq!(refused(b"{\"format\": 2, \"something\": [\"new\"]}"), newer);
    let mut plan = plan();
    plan.format = 2;
    assert_eq!(refused(plan_to_json(&plan).as_bytes()), newer);
    assert_eq!(refused(&plan_to_protobuf(&plan)), newer);
    let mut bytes = plan_to_protobuf(&plan);
    bytes.truncate(15);
    bytes.extend([0xff; 40]);
    assert_eq!(refused(&bytes), newer);
}

#[test]
fn edits_are_named_with_their_place() {
    for (pointer, value, expected) in [
        ("/micro_batches", json!("three"), ["at `micro_batches`, line ", "expected u64"]),
        ("/programs/0/buffers/3/kind", json!("weight"), ["at `programs[0].buffers[3].kind`, line ", "unknown variant"]),
        ("/segments/1/formals/0/type", json!("f32(2,3)"), ["at `segments[1].formals[0].type`", "expected a type like"]),
        ("/ranks/0/group", json!(-1), ["at `ranks[0].group`, line ", "invalid value"]),
        ("/surprise", json!(1), ["at `surprise`, line ", "unknown field"]),
        ("/kernels/2/surprise", json!(1), ["at `kernels[2].surprise`", "unknown field"]),
        ("/programs/0/body/0/once/surprise", json!(1), ["at `programs[0].body[0].once.surprise`", "unknown field"]),
        ("/kernels/2/attrs/transpose_c", json!(true), ["at `kernels[2]", "no attribute `transpose_c`"]),
        ("/kernels/2/op", json!("matmull"), ["at `kernels[2]", "unknown operator `matmull`"]),
    ] {
        let text = edited(pointer, value);
        assert!(text.starts_with("error[E0704]: cannot read the plan `plan.json`: at "), "{text}");
        for expected in expected {
            assert!(text.contains(expected), "{pointer}: expected `{expected}` in `{text}`");
        }
    }
}

/// Bytes changed at random are read as a plan or refused; nothing panics.
#[test]
fn damaged_files_are_answered() {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut refused = 0;
    for original in [plan_to_protobuf(&plan()), plan_to_json(&plan()).into_bytes()] {
        for _ in 0..300 {
            let mut bytes = original.clone();
            for _ in 0..=random(4) {
                let at = random(bytes.len());
                bytes[at] = random(256) as u8;
            }
            refused += usize::from(read_plan(&bytes, "plan").is_err());
        }
    }
    assert!(refused > 300, "only {refused} of 600 damaged files were refused");
}
