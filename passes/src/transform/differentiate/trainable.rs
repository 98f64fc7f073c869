//! Which parameters are trained: a list of name patterns.

use std::fmt;

/// Patterns of parameter names, where `*` matches any run of characters; no patterns train everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trainable {
    patterns: Vec<String>,
}

impl Trainable {
    /// Every parameter.
    pub fn all() -> Self {
        Self::default()
    }

    /// The parameters whose names match one of the patterns.
    pub fn matching(patterns: impl IntoIterator<Item = String>) -> Self {
        Self { patterns: patterns.into_iter().collect() }
    }

    /// Whether the parameter of this name is trained.
    pub fn matches(&self, name: &str) -> bool {
        self.patterns.is_empty() || self.patterns.iter().any(|pattern| glob(pattern, name))
    }
}

impl fmt::Display for Trainable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.patterns.is_empty() {
            true => f.write_str("`*`"),
            false => write!(f, "`{}`", self.patterns.join("`, `")),
        }
    }
}

fn glob(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().expect("split gives at least one part");
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(start) => rest = &rest[start + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_any_characters() {
        for (pattern, name, expected) in [
            ("h.0.w", "h.0.w", true),
            ("h.0.w", "h.0.wb", false),
            ("h.*.w", "h.12.attn.w", true),
            ("h.*.w", "h.12.attn.wx", false),
            ("*bias", "h.bias", true),
            ("*", "", true),
            ("lora.*", "lora.a", true),
            ("lora.*", "xlora.a", false),
            ("a*a", "a", false),
            ("*a*b*", "xxaxxbx", true),
            ("*b*a*", "xxaxxbx", false),
        ] {
            assert_eq!(glob(pattern, name), expected, "{pattern} against {name}");
        }
    }
}
