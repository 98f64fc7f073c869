//! A crate that carries the plan of a model, made by its build script.

/// The plan.
pub const PLAN: &str = include_str!(concat!(env!("OUT_DIR"), "/plan/plan.json"));

/// What it is expected to take.
pub const SUMMARY: &str = include_str!(concat!(env!("OUT_DIR"), "/plan/summary.json"));

#[cfg(test)]
mod tests {
    #[test]
    fn the_plan_is_embedded() {
        assert!(super::PLAN.contains("\"programs\"") && super::SUMMARY.contains("\"step_time_s\""));
    }
}
