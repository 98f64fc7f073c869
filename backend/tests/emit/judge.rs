//! Judges JSON by the part of JSON Schema that the schemas in docs/ use.

use serde_json::Value;

/// The keywords that the judge below knows; any other would go unchecked.
const KNOWN: [&str; 19] = [
    "$schema",
    "$defs",
    "$ref",
    "title",
    "description",
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "minimum",
    "maximum",
    "pattern",
    "oneOf",
    "anyOf",
    "format",
    "minItems",
];

/// Whether a value is what a schema asks for; `Err` says where it is not.
pub(crate) fn judge(root: &Value, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{path}: {what}: {value}"));
    let schema = schema.as_object().expect("schemas here are objects");
    for keyword in schema.keys() {
        assert!(KNOWN.contains(&keyword.as_str()), "unknown keyword {keyword}");
    }
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(reference.trim_start_matches('#')).expect("references lead somewhere");
        judge(root, target, value, path)?;
    }
    if let Some(ty) = schema.get("type").and_then(Value::as_str) {
        let fits = match ty {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "integer" => value.is_i64() || value.is_u64(),
            other => panic!("unknown type {other}"),
        };
        if !fits {
            return wrong(&format!("expected {ty}"));
        }
    }
    if schema.get("enum").and_then(Value::as_array).is_some_and(|options| !options.contains(value)) {
        return wrong("expected another word");
    }
    if schema.get("const").is_some_and(|constant| constant != value) {
        return wrong("expected another constant");
    }
    let number = value.as_f64();
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if number.zip(bound("minimum")).is_some_and(|(n, low)| n < low)
        || number.zip(bound("maximum")).is_some_and(|(n, high)| n > high)
    {
        return wrong("out of range");
    }
    for (key, exactly_one) in [("oneOf", true), ("anyOf", false)] {
        if let Some(options) = schema.get(key).and_then(Value::as_array) {
            let fitting = options.iter().filter(|option| judge(root, option, value, path).is_ok()).count();
            if fitting == 0 || (exactly_one && fitting != 1) {
                return wrong(&format!("{fitting} of {} forms fit", options.len()));
            }
        }
    }
    if let Some(fields) = value.as_object() {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            if !fields.contains_key(name.as_str().expect("names are texts")) {
                return wrong(&format!("{name} is missing"));
            }
        }
        for (name, field) in fields {
            let path = format!("{path}.{name}");
            match (schema.get("properties").and_then(|known| known.get(name)), schema.get("additionalProperties")) {
                (Some(known), _) => judge(root, known, field, &path)?,
                (None, Some(Value::Bool(false))) => return Err(format!("{path}: unknown field")),
                (None, Some(other)) => judge(root, other, field, &path)?,
                (None, None) => {}
            }
        }
    }
    if let (Some(list), Some(items)) = (value.as_array(), schema.get("items")) {
        if schema.get("minItems").and_then(Value::as_u64).is_some_and(|least| (list.len() as u64) < least) {
            return wrong("too few");
        }
        for (index, item) in list.iter().enumerate() {
            judge(root, items, item, &format!("{path}[{index}]"))?;
        }
    }
    Ok(())
}
