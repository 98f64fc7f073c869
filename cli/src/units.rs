//! Numbers as people read them. Exact ones are in `summary.json`.

/// A number of bytes, in binary units with three digits or so.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", three_digits(value), UNITS[unit])
}

/// A time.
pub fn time(ps: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)];
    let (unit, size) = UNITS.iter().rev().find(|(_, size)| ps >= *size).unwrap_or(&UNITS[0]);
    format!("{} {unit}", three_digits(ps as f64 / *size as f64))
}

/// A count with separators: `12,345`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of things: `1 rank`, `2 ranks`.
pub fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// A count in words: `124 M`.
pub fn rounded(n: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("T", 1_000_000_000_000)];
    match UNITS.iter().rev().find(|(_, size)| n >= *size) {
        None => n.to_string(),
        Some((unit, size)) => format!("{} {unit}", three_digits(n as f64 / *size as f64)),
    }
}

/// A share of a whole in percent.
pub fn percent(part: u64, whole: u64) -> String {
    let share = if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 };
    format!("{share:.1} %")
}

fn three_digits(value: f64) -> String {
    let digits = if value < 9.995 {
        2
    } else if value < 99.95 {
        1
    } else {
        0
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.00 KiB");
        assert_eq!(bytes(10 << 20), "10.0 MiB");
        assert_eq!(bytes((1 << 30) - 1), "1.00 GiB");
        assert_eq!(bytes(u64::MAX), "16384 PiB");
        assert_eq!(time(0), "0.00 ns");
        assert_eq!(time(12_345_678), "12.3 us");
        assert_eq!(time(1_500_000_000_000), "1.50 s");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(999), "999");
        assert_eq!(rounded(124_439_808), "124 M");
        assert_eq!(rounded(999), "999");
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(1, 0), "0.0 %");
    }
}
