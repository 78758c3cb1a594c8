//! Lengths of time as people write them: `500ms`, `24h`, `1h30m`, `2d`.

/// Milliseconds, if the text is a length of time. Units: `ms`, `s`, `m`, `h`, `d`, `w`; parts may follow each other; a fraction is
/// allowed (`1.5s`). A number alone is milliseconds.
#[must_use]
pub fn parse_delay(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(ms) = text.parse::<u32>() {
        return Some(i64::from(ms));
    }
    let mut total = 0i64;
    let mut rest = text;
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (digits, tail) = rest.split_at_checked(number)?;
        let unit_len = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(unit_len)?;
        let unit: i64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 604_800_000,
            _ => return None,
        };
        total = total.checked_add(scale(digits, unit)?)?;
        rest = tail;
    }
    if text.is_empty() { None } else { Some(total) }
}

/// `digits` (with an optional fraction) times `unit`, rounded down to milliseconds; exact, without floating point.
fn scale(digits: &str, unit: i64) -> Option<i64> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.len() > 9 {
        return None;
    }
    // CSS, and with it SCXML, writes half a second as `.5s`.
    let whole = if whole.is_empty() { 0 } else { whole.parse::<i64>().ok()? };
    let mut ms = whole.checked_mul(unit)?;
    if !fraction.is_empty() {
        let scale = 10i64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let part =
            i128::from(fraction.parse::<i64>().ok()?).checked_mul(i128::from(unit))?.checked_div(i128::from(scale))?;
        ms = ms.checked_add(i64::try_from(part).ok()?)?;
    }
    Some(ms)
}

#[cfg(test)]
mod tests {
    use super::parse_delay;

    #[test]
    fn lengths() {
        for (text, ms) in [
            ("500ms", 500),
            ("24h", 86_400_000),
            ("1h30m", 5_400_000),
            ("1.5s", 1_500),
            ("250", 250),
            ("2d", 172_800_000),
            ("0s", 0),
            (".5s", 500),
        ] {
            assert_eq!(parse_delay(text), Some(ms), "{text}");
        }
        for text in ["", "h", "1x", "-1s", "1.s.", "soon", ".s", "99999999999999999h", "1s x"] {
            assert_eq!(parse_delay(text), None, "{text}");
        }
    }
}
