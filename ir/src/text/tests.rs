//! Tests of single spellings; whole graphs are tested by the round trip properties and golden files.

use super::element::{element_bytes, element_text, real_text, real_value};
use super::{parse, read};
use crate::diag::Place;
use crate::id::Id;
use crate::op::{Op, Real, encode_f64};
use crate::{DType, NodeId};

#[test]
fn every_half_precision_pattern_reads_back() {
    for dtype in [DType::F16, DType::BF16] {
        for bits in 0..=u16::MAX {
            let bytes = bits.to_le_bytes();
            let text = element_text(dtype, &bytes);
            assert_eq!(element_bytes(dtype, &text).as_deref(), Some(&bytes[..]), "{dtype} {bits:#x}: {text}");
        }
    }
}

#[test]
fn floats_are_spelled_as_short_as_they_read_back() {
    // 0.1 rounded to each type; the expected texts are the shortest decimals by inspection.
    for dtype in [DType::F32, DType::F64] {
        assert_eq!(element_text(dtype, &encode_f64(dtype, 0.1)), "0.1");
    }
    assert_eq!(real_text(Real::new(1e-5)), "1e-5");
    assert_eq!(real_text(Real::new(-0.0)), "-0.0");
    assert_eq!(real_text(Real::new(f64::NAN)), "nan");
    assert_eq!(real_text(Real::new(-f64::NAN)), "0xfff8000000000000");
    assert_eq!(real_text(Real::new(f64::NEG_INFINITY)), "-inf");
    assert_eq!(element_text(DType::F32, &0x7fc0_0001_u32.to_le_bytes()), "0x7fc00001");
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    assert_eq!(element_bytes(DType::U8, "256"), None);
    assert_eq!(element_bytes(DType::Bool, "1"), None);
    assert_eq!(element_bytes(DType::I32, "1.0"), None);
    assert_eq!(element_bytes(DType::F32, "infinity"), None);
    assert_eq!(element_bytes(DType::F16, "0x1"), None);
    assert_eq!(real_value("0x7ff8000000000001").map(Real::get).map(f64::to_bits), Some(0x7ff8_0000_0000_0001));
}

#[test]
fn a_map_finds_lines() {
    let source = "graph \"g\" {\n  v0 = input data \"x\" : f32[2]\n  v1 = exp(v0) : f32[2]\n}\n";
    let (graph, map) = read("g.ir", source).expect("the text is well-formed");
    let node = NodeId::from_index(0);
    assert_eq!(graph.nodes[node].op.spelling(), "exp");
    assert_eq!(&source[map.range(crate::Entity::Node(node))], "v1 = exp(v0) : f32[2]");
    assert_eq!(&source[map.range(crate::Entity::Input(0))], "v0 = input data \"x\" : f32[2]");
}

#[test]
fn errors_of_the_verifier_point_into_the_text() {
    let source = "graph \"g\" {\n  v0 = input data \"x\" : f32[2]\n  v1 = exp(v0) : f32[3]\n}\n";
    let errors = parse("g.ir", source).expect_err("exp does not change the type");
    let [error] = errors.as_slice() else { panic!("{errors:?}") };
    assert_eq!(error.code, "V06");
    assert!(error.message.contains("f32[3]") && error.message.contains("f32[2]"), "{}", error.message);
    let Place::Source { file, start, end } = &error.labels[0].place else { panic!("{error:?}") };
    assert_eq!((file.as_str(), &source[*start..*end]), ("g.ir", "v1 = exp(v0) : f32[3]"));
}

#[test]
fn errors_are_bounded() {
    let source = format!("graph \"g\" {{\n{}}}\n", "?\n".repeat(100_000));
    let errors = read("g.ir", &source).expect_err("a question mark is nothing");
    assert_eq!(errors.len(), 65);
    assert_eq!(errors[64].code, "E0210");
}

#[test]
fn a_value_number_takes_no_memory() {
    let errors =
        read("g.ir", "graph \"g\" {\n  v4294967294 = input data \"x\" : f32[2]\n}\n").expect_err("there is a gap");
    assert_eq!(errors[0].code, "E0208");
}

#[test]
fn spellings_are_not_keywords() {
    for (_, spelling) in Op::spellings() {
        assert!(!["input", "output", "graph", "training"].contains(&spelling), "{spelling}");
        let is_id = spelling.trim_end_matches(|c: char| c.is_ascii_digit());
        assert!(!["v", "n", "w"].contains(&is_id), "{spelling} reads as an id");
    }
}
