//! Conditions on the difference of two plans: `peak>+2%`, `step>1.5s`, `gpus>+0`.

use super::{Facts, PlanDiff};
use crate::failure::{BAD_OPTION, CONDITION_HOLDS, Failure};
use crate::units::{bytes, percent, time};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use trainc_ir::Diagnostic;

/// A figure of a plan that conditions may be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Memory of the fullest GPU.
    Peak,
    /// The largest arena.
    Arena,
    /// Weights of all ranks.
    Parameters,
    /// Activations kept for the backward, of the rank with the most.
    Saved,
    /// Time of a step.
    Step,
    /// Recomputation of all ranks.
    Recompute,
    /// Recomputation that makes the step longer.
    ExposedRecompute,
    /// Idle share of the GPUs' time.
    Bubble,
    /// Number of GPUs.
    Gpus,
    /// Number of stages.
    Stages,
}

/// What a metric is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Bytes,
    Time,
    Share,
    Count,
}

impl Metric {
    /// All of them with their spelling.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::Peak, "peak"),
        (Self::Arena, "arena"),
        (Self::Parameters, "parameters"),
        (Self::Saved, "saved"),
        (Self::Step, "step"),
        (Self::Recompute, "recompute"),
        (Self::ExposedRecompute, "exposed-recompute"),
        (Self::Bubble, "bubble"),
        (Self::Gpus, "gpus"),
        (Self::Stages, "stages"),
    ];

    /// Its value, in bytes, picoseconds, millionths or one by one.
    pub fn of(self, facts: &Facts) -> u64 {
        match self {
            Self::Peak => facts.largest(|rank| rank.device_bytes).1,
            Self::Arena => facts.largest(|rank| rank.arena_bytes).1,
            Self::Parameters => facts.sum(|rank| rank.breakdown.parameters),
            Self::Saved => facts.largest(|rank| rank.breakdown.saved).1,
            Self::Step => facts.step_ps,
            Self::Recompute => facts.recompute_ps,
            Self::ExposedRecompute => facts.exposed_recompute_ps,
            Self::Bubble => facts.bubble_ppm,
            Self::Gpus => facts.ranks.len() as u64,
            Self::Stages => facts.stages(),
        }
    }

    fn quantity(self) -> Quantity {
        match self {
            Self::Peak | Self::Arena | Self::Parameters | Self::Saved => Quantity::Bytes,
            Self::Step | Self::Recompute | Self::ExposedRecompute => Quantity::Time,
            Self::Bubble => Quantity::Share,
            Self::Gpus | Self::Stages => Quantity::Count,
        }
    }

    /// What its value is counted in.
    pub fn unit(self) -> &'static str {
        match self.quantity() {
            Quantity::Bytes => "bytes",
            Quantity::Time => "ps",
            Quantity::Share => "ppm",
            Quantity::Count => "count",
        }
    }

    /// A value as people read it.
    pub(super) fn shown(self, value: u64) -> String {
        match self.quantity() {
            Quantity::Bytes => bytes(value),
            Quantity::Time => time(value),
            Quantity::Share => percent(value, 1_000_000),
            Quantity::Count => value.to_string(),
        }
    }
}

/// A number with a decimal point: `mantissa / 10^decimals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decimal {
    mantissa: i128,
    scale: i128,
}

/// What a metric is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    /// A value.
    Absolute(Decimal),
    /// The first plan's value and this much.
    Change(Decimal),
    /// The first plan's value and this much of it in percent.
    Percent(Decimal),
}

/// A condition on the difference of two plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    text: String,
    metric: Metric,
    order: Ordering,
    or_equal: bool,
    bound: Bound,
}

impl Condition {
    /// A diagnostic where it holds.
    pub fn check(&self, diff: &PlanDiff) -> Option<Diagnostic> {
        let [before, after] = [&diff.before, &diff.after].map(|facts| self.metric.of(facts));
        let (a, b) = (i128::from(before), i128::from(after));
        // Both sides times what divides the right one.
        let (left, right) = match self.bound {
            Bound::Absolute(bound) => (b * bound.scale, bound.mantissa),
            Bound::Change(bound) => ((b - a) * bound.scale, bound.mantissa),
            Bound::Percent(bound) => ((b - a) * 100 * bound.scale, a.saturating_mul(bound.mantissa)),
        };
        let order = left.cmp(&right);
        if order != self.order && !(self.or_equal && order == Ordering::Equal) {
            return None;
        }
        let name = Metric::ALL.iter().find(|(metric, _)| *metric == self.metric).map_or("", |(_, name)| name);
        let [before, after] = [before, after].map(|value| self.metric.shown(value));
        let message = format!("`{}` holds: `{name}` was {before} and is {after}", self.text);
        let help = "look at the differences above; accept them by keeping the new plan, or change the condition";
        Some(Diagnostic::error(CONDITION_HOLDS, message).with_help(help))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Condition {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let refuse = |why: String| {
            let names = Metric::ALL.map(|(_, name)| name).join("`, `");
            let help = format!(
                "write METRIC, one of `>`, `>=`, `<`, `<=`, and a number with its unit, as in `peak>+2%`, `peak>=40GiB`, \
                 `step>+10ms` or `gpus>8`: a number with a sign is the change from the first plan to the second; metrics \
                 are `{names}`"
            );
            let message = format!("cannot read the condition `{text}`: {why}");
            Failure::usage(Diagnostic::error(BAD_OPTION, message).with_help(help))
        };
        let at = text.find(['>', '<']).ok_or_else(|| refuse("it compares nothing".to_owned()))?;
        let name = text[..at].trim();
        let metric = Metric::ALL.iter().find(|(_, known)| *known == name).map(|(metric, _)| *metric);
        let metric = metric.ok_or_else(|| refuse(format!("there is no metric `{name}`")))?;
        let order = if text[at..].starts_with('>') { Ordering::Greater } else { Ordering::Less };
        let rest = &text[at + 1..];
        let (or_equal, rest) = rest.strip_prefix('=').map_or((false, rest), |rest| (true, rest));
        let bound = bound(metric.quantity(), rest.trim()).map_err(refuse)?;
        Ok(Self { text: text.trim().to_owned(), metric, order, or_equal, bound })
    }
}

/// Units with how many of the metric's own they are.
fn units(quantity: Quantity) -> &'static [(&'static str, i128)] {
    match quantity {
        Quantity::Bytes => &[
            ("B", 1),
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
            ("TiB", 1 << 40),
            ("KB", 1_000),
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("TB", 1_000_000_000_000),
        ],
        Quantity::Time => {
            &[("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)]
        }
        Quantity::Share => &[("%", 10_000)],
        Quantity::Count => &[("", 1)],
    }
}

fn bound(quantity: Quantity, text: &str) -> Result<Bound, String> {
    let signed = text.starts_with(['+', '-']);
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '+' | '-')).unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    let decimal = decimal(number).ok_or_else(|| format!("`{text}` does not begin with a number"))?;
    if unit == "%" && quantity != Quantity::Share {
        let why = "a change in percent has a sign, as in `+2%`".to_owned();
        return if signed { Ok(Bound::Percent(decimal)) } else { Err(why) };
    }
    let known = units(quantity);
    let found = known.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size);
    let zero = (decimal.mantissa == 0 && unit.is_empty()).then_some(1);
    let size = found.or(zero).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).filter(|name| !name.is_empty()).collect();
        match names.as_slice() {
            [] => format!("the metric is a count, which has no unit, but found `{unit}`"),
            names => format!("expected one of the units `{}`, found `{unit}`", names.join("`, `")),
        }
    })?;
    let value = Decimal { mantissa: decimal.mantissa * size, ..decimal };
    Ok(if signed { Bound::Change(value) } else { Bound::Absolute(value) })
}

/// A decimal number of at most 15 digits.
fn decimal(text: &str) -> Option<Decimal> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{part}");
    if all.is_empty() || all.len() > 15 || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mantissa: i128 = all.parse().ok()?;
    Some(Decimal { mantissa: if negative { -mantissa } else { mantissa }, scale: 10i128.pow(part.len() as u32) })
}
