//! What the models of a run took: tokens and money.

use charter_journal::UsageTotals;
use charter_models::price;
use serde_json::{Value as Json, json};

use super::text::count;

/// Renders the totals of a run: `models: 2 questions, 3,100 tokens read, 210 written, $0.0012`;
/// `None` if no model was asked.
pub(crate) fn line(totals: &UsageTotals) -> Option<String> {
    if totals.questions == 0 {
        return None;
    }
    let about = if totals.estimated { "about " } else { "" };
    let cached = match totals.cached {
        0 => String::new(),
        cached => format!(" ({} cached)", grouped(cached)),
    };
    Some(format!(
        "models: {}, {about}{} tokens read{cached}, {} written{}",
        count(totals.questions, "question"),
        grouped(totals.input),
        grouped(totals.output),
        cost(totals).map(|cost| format!(", {cost}")).unwrap_or_default()
    ))
}

/// Renders what a run cost, as far as prices are known.
pub(crate) fn cost(totals: &UsageTotals) -> Option<String> {
    let priced = totals.questions.saturating_sub(totals.unpriced);
    (priced > 0).then(|| {
        let cost = price::show(totals.cost);
        match totals.unpriced {
            0 => cost,
            unpriced => format!("{cost} and {} without a price", count(unpriced, "question")),
        }
    })
}

/// The totals for machines; `None` if no model was asked.
pub(crate) fn json(totals: &UsageTotals) -> Option<Json> {
    (totals.questions > 0).then(|| json!(totals))
}

/// Renders a number with a comma between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && at % 3 == first {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{UsageTotals, grouped, line};

    #[test]
    fn lines() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (12_345_678, "12,345,678")] {
            assert_eq!(grouped(number), text);
        }
        let totals = UsageTotals { questions: 2, unpriced: 2, input: 3_100, output: 210, ..UsageTotals::default() };
        assert_eq!(line(&totals).unwrap(), "models: 2 questions, 3,100 tokens read, 210 written");
        let priced = UsageTotals { unpriced: 1, cost: 1_200_000_000, cached: 5, estimated: true, ..totals };
        let text = "models: 2 questions, about 3,100 tokens read (5 cached), 210 written, $0.0012 and 1 question without a price";
        assert_eq!(line(&priced).unwrap(), text);
        assert_eq!(line(&UsageTotals::default()), None);
    }
}
