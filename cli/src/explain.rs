//! What `trainc explain` says of a code beyond its meaning: why it matters, how to fix it, an example.

use std::collections::BTreeMap;

/// The texts, as sections of `## CODE` with paragraphs `Why:`, `Fix:` and `Example:`.
const TEXTS: [&str; 5] = [
    include_str!("../explanations/models.md"),
    include_str!("../explanations/text.md"),
    include_str!("../explanations/clusters.md"),
    include_str!("../explanations/training.md"),
    include_str!("../explanations/commands.md"),
];

/// What there is to say of a code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// Why it matters.
    pub why: &'static str,
    /// How to fix it.
    pub fix: &'static str,
    /// Something that leads to it.
    pub example: &'static str,
}

/// The explanation of every code.
pub fn explanations() -> BTreeMap<&'static str, Explanation> {
    TEXTS.iter().flat_map(|text| text.split("\n## ").skip(1)).map(section).collect()
}

/// A section whose text is read paragraph by paragraph; each of them is one line or several.
fn section(text: &'static str) -> (&'static str, Explanation) {
    let (code, rest) = text.split_once('\n').unwrap_or((text, ""));
    let paragraph = |name: &str| {
        let start = rest.find(name).map_or(rest.len(), |at| at + name.len());
        let end = ["\nWhy:", "\nFix:", "\nExample:"].iter().filter_map(|next| rest[start..].find(next)).min();
        rest[start..end.map_or(rest.len(), |end| start + end)].trim()
    };
    let explanation = Explanation { why: paragraph("Why:"), fix: paragraph("Fix:"), example: paragraph("Example:") };
    (code.trim(), explanation)
}

#[cfg(test)]
mod tests {
    use super::{TEXTS, explanations};
    use crate::codes::codes;
    use std::collections::BTreeSet;

    #[test]
    fn every_code_is_explained_in_three_parts() {
        let explanations = explanations();
        let mut complaints = Vec::new();
        for (code, _) in codes() {
            let Some(of) = explanations.get(code) else {
                complaints.push(format!("{code} has no section in cli/explanations"));
                continue;
            };
            for (part, text) in [("Why", of.why), ("Fix", of.fix), ("Example", of.example)] {
                if text.len() < 10 || text.contains("Why:") || text.contains("Fix:") || text.contains("Example:") {
                    complaints.push(format!("{code}: `{part}:` is missing or stands twice"));
                }
            }
        }
        let known: BTreeSet<&str> = codes().into_iter().map(|(code, _)| code).collect();
        complaints.extend(explanations.keys().filter(|code| !known.contains(*code)).map(|c| format!("{c} is no code")));
        assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
        let sections: usize = TEXTS.iter().map(|text| text.matches("\n## ").count()).sum();
        assert_eq!(sections, explanations.len(), "a code has two sections");
    }
}
