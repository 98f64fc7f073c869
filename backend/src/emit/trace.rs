//! A timeline in the trace event format that Perfetto (`ui.perfetto.dev`) and `chrome://tracing` open.
//!
//! Times are given in picoseconds and written in microseconds with six decimals: digits are moved, nothing is rounded.

use std::fmt::Write;

/// A timeline: rows of slices, grouped into processes, with arrows between slices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Groups of rows, in the order in which they are shown.
    pub processes: Vec<TraceProcess>,
    /// What the rows hold. Slices of one row must not overlap.
    pub slices: Vec<TraceSlice>,
    /// Arrows from the start of one slice to that of another.
    pub arrows: Vec<TraceArrow>,
}

/// A group of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceProcess {
    /// Its name.
    pub name: String,
    /// The names of its rows, in the order in which they are shown.
    pub rows: Vec<String>,
}

/// Something that took time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSlice {
    /// Position of its process.
    pub process: usize,
    /// Position of its row in the process.
    pub row: usize,
    /// What is written on it.
    pub name: String,
    /// What it is a case of; viewers filter and colour by it.
    pub category: &'static str,
    /// When it starts.
    pub start_ps: u64,
    /// When it ends.
    pub end_ps: u64,
    /// What is shown when it is selected.
    pub details: Vec<(&'static str, TraceDetail)>,
}

/// A detail of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceDetail {
    /// A number.
    Number(u64),
    /// A text.
    Text(String),
}

/// An arrow between two slices, by their positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceArrow {
    /// What it is a case of.
    pub name: String,
    /// Where it starts.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
}

/// The trace as JSON, one event per line. Processes and rows are numbered by their positions.
pub fn trace_to_json(trace: &Trace) -> String {
    let mut events = Vec::new();
    for (pid, process) in trace.processes.iter().enumerate() {
        events.push(metadata("process_name", pid, None, &format!("\"name\":{}", quoted(&process.name))));
        events.push(metadata("process_sort_index", pid, None, &format!("\"sort_index\":{pid}")));
        for (tid, row) in process.rows.iter().enumerate() {
            events.push(metadata("thread_name", pid, Some(tid), &format!("\"name\":{}", quoted(row))));
            events.push(metadata("thread_sort_index", pid, Some(tid), &format!("\"sort_index\":{tid}")));
        }
    }
    events.extend(trace.slices.iter().map(slice));
    for (id, arrow) in trace.arrows.iter().enumerate() {
        let ends = [("\"ph\":\"s\"", arrow.from), ("\"ph\":\"f\",\"bp\":\"e\"", arrow.to)];
        for (phase, at) in ends {
            // An arrow to a slice that is not there would be lost in the viewer too.
            let Some(slice) = trace.slices.get(at) else { continue };
            events.push(format!(
                "{{{phase},\"id\":{id},\"pid\":{},\"tid\":{},\"ts\":{},\"cat\":\"flow\",\"name\":{}}}",
                slice.process,
                slice.row,
                microseconds(slice.start_ps),
                quoted(&arrow.name)
            ));
        }
    }
    let mut out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n".to_owned();
    out += &events.join(",\n");
    out += "\n]}\n";
    out
}

fn metadata(name: &str, pid: usize, tid: Option<usize>, what: &str) -> String {
    let tid = tid.map_or_else(String::new, |tid| format!(",\"tid\":{tid}"));
    format!("{{\"ph\":\"M\",\"pid\":{pid}{tid},\"name\":\"{name}\",\"args\":{{{what}}}}}")
}

fn slice(slice: &TraceSlice) -> String {
    let mut out = format!(
        "{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"cat\":{},\"name\":{}",
        slice.process,
        slice.row,
        microseconds(slice.start_ps),
        microseconds(slice.end_ps.saturating_sub(slice.start_ps)),
        quoted(slice.category),
        quoted(&slice.name)
    );
    let details: Vec<String> = slice
        .details
        .iter()
        .map(|(key, detail)| match detail {
            TraceDetail::Number(number) => format!("{}:{number}", quoted(key)),
            TraceDetail::Text(text) => format!("{}:{}", quoted(key), quoted(text)),
        })
        .collect();
    if !details.is_empty() {
        write!(out, ",\"args\":{{{}}}", details.join(",")).expect("writing to a string does not fail");
    }
    out.push('}');
    out
}

/// Picoseconds as microseconds, exactly.
fn microseconds(ps: u64) -> String {
    format!("{}.{:06}", ps / 1_000_000, ps % 1_000_000)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(row: usize, name: &str, start_ps: u64, end_ps: u64) -> TraceSlice {
        let details = vec![("bytes", TraceDetail::Number(4)), ("of", TraceDetail::Text("a".to_owned()))];
        TraceSlice { process: 0, row, name: name.to_owned(), category: "forward", start_ps, end_ps, details }
    }

    /// The fields are those of the format's description: `ph`, `pid`, `tid`, `ts`, `dur`, and `s` / `f` for arrows.
    #[test]
    fn every_event_is_a_line_of_the_format() {
        let trace = Trace {
            processes: vec![TraceProcess { name: "rank 0".to_owned(), rows: vec!["a \"b\"".to_owned()] }],
            slices: vec![call(0, "one", 0, 1_500_001), TraceSlice { details: Vec::new(), ..call(0, "\n", 2, 3) }],
            arrows: vec![TraceArrow { name: "x".to_owned(), from: 0, to: 1 }],
        };
        let text = trace_to_json(&trace);
        assert_eq!(
            text,
            r#"{"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":0,"name":"process_name","args":{"name":"rank 0"}},
{"ph":"M","pid":0,"name":"process_sort_index","args":{"sort_index":0}},
{"ph":"M","pid":0,"tid":0,"name":"thread_name","args":{"name":"a \"b\""}},
{"ph":"M","pid":0,"tid":0,"name":"thread_sort_index","args":{"sort_index":0}},
{"ph":"X","pid":0,"tid":0,"ts":0.000000,"dur":1.500001,"cat":"forward","name":"one","args":{"bytes":4,"of":"a"}},
{"ph":"X","pid":0,"tid":0,"ts":0.000002,"dur":0.000001,"cat":"forward","name":"\n"},
{"ph":"s","id":0,"pid":0,"tid":0,"ts":0.000000,"cat":"flow","name":"x"},
{"ph":"f","bp":"e","id":0,"pid":0,"tid":0,"ts":0.000002,"cat":"flow","name":"x"}
]}
"#
        );
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }

    #[test]
    fn an_empty_trace_is_a_trace() {
        assert!(serde_json::from_str::<serde_json::Value>(&trace_to_json(&Trace::default())).is_ok());
    }
}
