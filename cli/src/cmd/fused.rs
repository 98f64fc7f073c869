//! What `trainc inspect` says about composite operators.

use crate::table::{Align, Table};
use serde_json::{Value, json};
use trainc::units::count;
use trainc_passes::transform::Fusions;

/// The part of the report; `None` where there is nothing to say.
pub(super) fn section(fusions: &Fusions) -> Option<String> {
    let mut parts = Vec::new();
    if !fusions.forms.is_empty() {
        let mut table = Table::new(&[("form", Align::Left), ("count", Align::Right), ("of them", Align::Left)]);
        for form in &fusions.forms {
            table.row([form.name.to_owned(), count(form.count as u64), form.words()]);
        }
        parts.push(format!("Composite operators\n{}", table.print()));
    }
    if !fusions.apart.is_empty() {
        let mut table =
            Table::new(&[("looks like", Align::Left), ("count", Align::Right), ("stays apart", Align::Left)]);
        for apart in &fusions.apart {
            table.row([apart.name.to_owned(), count(apart.count as u64), apart.reason.clone()]);
        }
        parts.push(table.print());
    }
    (!parts.is_empty()).then(|| parts.join("\n"))
}

/// The same as JSON.
pub(super) fn object(fusions: &Fusions) -> Value {
    let forms: serde_json::Map<String, Value> = fusions
        .forms
        .iter()
        .map(|form| {
            let details: Vec<_> = form.details.iter().map(|(is, count)| json!({ "is": is, "count": count })).collect();
            (form.name.to_owned(), json!({ "count": form.count, "details": details }))
        })
        .collect();
    let apart: Vec<_> = fusions
        .apart
        .iter()
        .map(|apart| json!({ "looks_like": apart.name, "count": apart.count, "reason": apart.reason }))
        .collect();
    json!({ "forms": forms, "apart": apart })
}
