//! Names and values in the forms that schedulers take.

/// The name as an RFC 1035 label of at most `longest` characters: lower case letters, digits and `-`, a letter first, no
/// `-` last. This is also an RFC 1123 label.
pub(super) fn dns_label(name: &str, longest: usize) -> String {
    let mut label = String::new();
    for c in name.chars() {
        let c = c.to_ascii_lowercase();
        if c.is_ascii_alphanumeric() {
            if label.is_empty() && c.is_ascii_digit() {
                label.push_str("x-");
            }
            label.push(c);
        } else if !label.is_empty() && !label.ends_with('-') {
            label.push('-');
        }
    }
    label.truncate(longest);
    label.truncate(label.trim_end_matches('-').len());
    if label.is_empty() { "job".to_owned() } else { label }
}

/// A distinct label for every name: names that come out equal get their position behind them.
pub(super) fn distinct_labels<'a>(names: impl IntoIterator<Item = &'a str>, longest: usize) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for (i, name) in names.into_iter().enumerate() {
        let mut label = dns_label(name, longest);
        let mut position = i;
        while labels.contains(&label) {
            let ending = format!("-{position}");
            label = dns_label(name, longest - ending.len()) + &ending;
            position += 1;
        }
        labels.push(label);
    }
    labels
}

/// Whether Kubernetes takes the text as the key of a label: an optional DNS subdomain and `/`, then a name.
pub(super) fn is_label_key(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let is_part = |part: &str| {
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        edge(part.chars().next()) && edge(part.chars().next_back()) && part.chars().all(|c| c == '-' || edge(Some(c)))
    };
    let is_prefix = |prefix: &str| prefix.len() <= 253 && prefix.split('.').all(is_part);
    !name.is_empty() && is_label_value(name) && prefix.is_none_or(is_prefix)
}

/// Whether Kubernetes takes the text as the value of a label.
pub(super) fn is_label_value(value: &str) -> bool {
    let edge = |c: char| c.is_ascii_alphanumeric();
    value.len() <= 63
        && value.chars().all(|c| edge(c) || matches!(c, '-' | '_' | '.'))
        && value.chars().next().is_none_or(edge)
        && value.chars().next_back().is_none_or(edge)
}

/// The text as a double-quoted YAML scalar.
pub(super) fn yaml_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// A label as a YAML scalar, quoted where YAML would read something else than a text in it.
pub(super) fn yaml_label(label: &str) -> String {
    const WORDS: [&str; 11] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"];
    let named = label.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    let plain = named && label.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'));
    if plain && !WORDS.contains(&label.to_ascii_lowercase().as_str()) { label.to_owned() } else { yaml_text(label) }
}

/// The text as one word of a POSIX shell.
pub(super) fn shell_word(text: &str) -> String {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '=' | ',' | '+' | '@' | '%');
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// The text as one line of a comment.
pub(super) fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() || matches!(c, '\u{85}' | '\u{2028}' | '\u{2029}') { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1035, section 2.3.1, and the limits of Kubernetes' validation.
    #[test]
    fn labels_are_rfc_1035() {
        assert_eq!(dns_label("GPT-2 (small)_mixed", 40), "gpt-2-small-mixed");
        assert_eq!(dns_label("7b", 40), "x-7b");
        assert_eq!(dns_label("--é--", 40), "job");
        assert_eq!(dns_label("abc-def", 4), "abc");
        let labels = distinct_labels(["A_1", "a-1", "a.1", "a-1-2"], 40);
        assert_eq!(labels, ["a-1", "a-1-1", "a-1-2", "a-1-2-3"]);
    }

    #[test]
    fn label_keys_and_values() {
        for good in ["zone", "topology.kubernetes.io/zone", "a/B_c.d-e"] {
            assert!(is_label_key(good), "{good}");
        }
        for bad in ["", "/x", "x/", "A/x", "a..b/x", "a/b/c", "a b", "-a", "é"] {
            assert!(!is_label_key(bad), "{bad}");
        }
        assert!(is_label_value("") && is_label_value("NVIDIA-A100-SXM4-80GB"));
        assert!(!is_label_value("a b") && !is_label_value("-a") && !is_label_value(&"a".repeat(64)));
    }

    #[test]
    fn quoting() {
        assert_eq!(yaml_text("a\"b\\c\nd\u{7}"), r#""a\"b\\c\nd\u0007""#);
        assert_eq!([yaml_label("No"), yaml_label("1e3"), yaml_label("a/b.c-d")], ["\"No\"", "\"1e3\"", "a/b.c-d"]);
        assert_eq!(shell_word("trainc"), "trainc");
        assert_eq!(shell_word("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(shell_word(""), "''");
    }
}
