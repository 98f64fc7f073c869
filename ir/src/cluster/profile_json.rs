//! Reads profiles in JSON: models, GPU types, sequence lengths and element types nested, with times by micro-batch.

use super::profile::{BAD_TABLE, BlockTimes, Profile};
use super::profile_read::{BLOCK_MS, PS_PER_MS};
use crate::diag::{Diagnostic, Diagnostics, Place};
use serde_json::Value;

/// Reads `{model: {gpu: {seq: {dtype: [.., .., [forward ms of 1, 2, .. samples], [backward ms of the same]]}}}}`, as the
/// Zorse planner keeps its profiles; the first two entries are fits, which are not used. There must be one model, and one
/// element type for each length.
pub(super) fn read(file: &str, text: &str) -> Result<Profile, Diagnostics> {
    let fault = |message: String, help: &str| {
        let place = Place::Source { file: file.to_owned(), start: 0, end: text.len().min(1) };
        vec![Diagnostic::error(BAD_TABLE, message).at(place, "in this file").with_help(help)]
    };
    let form = "expected {model: {gpu: {seq: {dtype: [fit, fit, [forward ms], [backward ms]]}}}}";
    let root: Value =
        serde_json::from_str(text).map_err(|error| fault(format!("the profile is not JSON: {error}"), form))?;
    let object =
        |value, what: &str| Value::as_object(value).ok_or_else(|| fault(format!("{what} is not an object"), form));
    let models = object(&root, "the profile")?;
    let (Some((model, gpus)), 1) = (models.iter().next(), models.len()) else {
        return Err(fault(
            format!("the profile has {} models, expected one", models.len()),
            "keep the times of one model",
        ));
    };
    let mut profile = Profile::default();
    for (gpu, lengths) in object(gpus, &format!("`{model}`"))? {
        for (length, dtypes) in object(lengths, &format!("`{gpu}`"))? {
            let place = format!("`{gpu}` at length `{length}`");
            let seq: u64 = length.parse().map_err(|_| fault(format!("{place} is no length"), form))?;
            let dtypes = object(dtypes, &place)?;
            let (Some(entry), 1) = (dtypes.values().next(), dtypes.len()) else {
                let message = format!("{place} has times of {} element types, expected one", dtypes.len());
                return Err(fault(message, "keep the times of one element type"));
            };
            let times = |i: usize| -> Option<Vec<u64>> {
                let times = entry.get(i)?.as_array()?.iter().map(|ms| ms.as_f64().filter(|ms| BLOCK_MS.contains(ms)));
                times.map(|ms| ms.map(|ms| (ms * PS_PER_MS).round() as u64)).collect()
            };
            let (Some(forward), Some(backward)) = (times(2), times(3)) else {
                return Err(fault(format!("{place} has no lists of milliseconds"), form));
            };
            if forward.len() != backward.len() {
                let message = format!("{place} has {} forwards and {} backwards", forward.len(), backward.len());
                return Err(fault(message, form));
            }
            for (i, (forward_ps, backward_ps)) in forward.into_iter().zip(backward).enumerate() {
                let micro_batch = i as u64 + 1;
                let times = BlockTimes { name: None, seq: Some(seq), micro_batch, forward_ps, backward_ps };
                profile.of(gpu).blocks.push(times);
            }
        }
    }
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_by_micro_batch_are_read() {
        let text = r#"{"m": {"T4": {"512": {"float16": [[1, 0], [2, 0], [0.5, 1], [1.5, 2.5]]}}}}"#;
        let profile = read("p", text).unwrap();
        let times = |micro_batch| profile.gpus[0].block("any", micro_batch, 512).map(|t| (t.forward_ps, t.backward_ps));
        assert_eq!(times(1), Some((500_000_000, 1_500_000_000)));
        assert_eq!(times(2), Some((1_000_000_000, 2_500_000_000)));
        assert_eq!((times(3), profile.gpus[0].block("any", 1, 256)), (None, None));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let message = |text: &str| read("p", text).unwrap_err()[0].message.clone();
        assert!(message("{").starts_with("the profile is not JSON: "));
        assert_eq!(message("[]"), "the profile is not an object");
        assert_eq!(message(r#"{"a": {}, "b": {}}"#), "the profile has 2 models, expected one");
        assert_eq!(message(r#"{"a": {"T4": {"x": {}}}}"#), "`T4` at length `x` is no length");
        assert_eq!(
            message(r#"{"a": {"T4": {"8": {}}}}"#),
            "`T4` at length `8` has times of 0 element types, expected one"
        );
        assert_eq!(
            message(r#"{"a": {"T4": {"8": {"f": [1, 2]}}}}"#),
            "`T4` at length `8` has no lists of milliseconds"
        );
        assert_eq!(
            message(r#"{"a": {"T4": {"8": {"f": [0, 0, [1], []]}}}}"#),
            "`T4` at length `8` has 1 forwards and 0 backwards"
        );
    }
}
