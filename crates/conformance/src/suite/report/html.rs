//! The report as one page of HTML that loads nothing: what is wrong, then a heat map of errors.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tensor_core::DType;

use super::whole::{grouped, reproduction, short};
use super::{DeviceReport, Report, Row, Seen};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Text as HTML shows it, in attributes too.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

pub(super) fn page(report: &Report) -> String {
    let (cases, seed) = (grouped(report.cases), report.seed);
    let parts = [devices(report), failures(report), heat_map(report), deviations(report), warnings(report)];
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Parity</title>\
         <style>{STYLE}</style></head>\n<body><header><h1>Parity</h1>\
         <p>About {cases} cases per device from seed {seed}, each held against a reference in f64 and the error bound \
         that the op's contract allows.</p></header>\n<main>{}</main>\n\
         <aside id=\"detail\" hidden></aside><script>{SCRIPT}</script></body></html>\n",
        parts.concat()
    )
}

/// A card per device, with its three states and its failures.
fn devices(report: &Report) -> String {
    let mut html = String::from("<section class=\"cards\">");
    for device in &report.devices {
        let [cases, passed, deviated, not_run, failed] = device.counts().map(grouped);
        let is_bad = if device.failures.is_empty() { "good" } else { "bad" };
        let emulated = if device.emulated { " <em>emulated</em>" } else { "" };
        let _ = write!(
            html,
            "<article class=\"{is_bad}\"><h2>{}{emulated}</h2><p>{}<br>{}<br>held to {}</p>\
             <p><b>{cases}</b> cases: <b>{passed}</b> passed, <b>{deviated}</b> deviated, <b>{not_run}</b> not run, \
             <b>{failed}</b> failed</p></article>",
            escape(&device.device),
            escape(&device.name),
            escape(&device.capability),
            escape(&device.accuracy),
        );
    }
    for absent in &report.absent {
        let (device, reason) = (escape(&absent.device), escape(&absent.reason));
        let _ = write!(html, "<article class=\"absent\"><h2>{device} <em>not run</em></h2><p>{reason}</p></article>");
    }
    html + "</section>\n"
}

fn failures(report: &Report) -> String {
    let all = report.devices.iter().flat_map(|device| device.failures.iter().map(move |failure| (device, failure)));
    let mut items = String::new();
    for (device, failure) in all {
        let what = format!("{}({}): {}", failure.op, failure.arguments, failure.check);
        let _ = write!(items, "<li><b>{}: {}</b><br>{}", device.device, escape(&what), escape(&failure.message));
        if !failure.case.is_empty() {
            let _ = write!(items, "<br><code>{}</code>", escape(&reproduction(&device.device, &failure.case)));
        }
        items += "</li>";
    }
    section("Failures", "bad", &items)
}

/// A list under a heading; nothing where there are no items.
fn section(title: &str, class: &str, items: &str) -> String {
    if items.is_empty() {
        return String::new();
    }
    format!("<section class=\"{class}\"><h2>{title}</h2><ul>{items}</ul></section>\n")
}

fn deviations(report: &Report) -> String {
    let mut items = String::new();
    for device in &report.devices {
        for d in &device.deviations {
            let what = format!("{}: {} {}: {}; instead: {}", device.device, d.op, d.dtype, d.reason, d.observed);
            let _ = write!(items, "<li>{} <small>({} cases)</small></li>", escape(&what), grouped(d.cases));
        }
    }
    section("Deviations", "", &items)
}

fn warnings(report: &Report) -> String {
    let all = report.devices.iter().flat_map(|d| d.warnings().into_iter().map(|w| format!("{}: {w}", d.device)));
    let items: Vec<String> = all.map(|warning| format!("<li>{}</li>", escape(&warning))).collect();
    if items.is_empty() {
        return String::new();
    }
    format!(
        "<section><details><summary>{} promises are more than 8 times looser than anything seen</summary><ul>{}</ul>\
         </details></section>\n",
        items.len(),
        items.concat()
    )
}

/// Ops by dtypes of every device; each cell shows values and, below, derivatives.
fn heat_map(report: &Report) -> String {
    let mut ops: BTreeMap<&str, Vec<(usize, &Row)>> = BTreeMap::new();
    for (i, device) in report.devices.iter().enumerate() {
        device.rows.iter().for_each(|row| ops.entry(&row.op).or_default().push((i, row)));
    }
    let columns: Vec<(usize, DType)> =
        (0..report.devices.len()).flat_map(|i| DType::ALL.into_iter().map(move |dtype| (i, dtype))).collect();
    let mut html = String::from(
        "<section><h2>Largest errors in ulps</h2><p>Above: values; below: derivatives. The colour is the part of the \
         error bound that is used: <span class=\"key\" style=\"--u:0\">none</span><span class=\"key\" style=\"--u:.25\">\
         a quarter</span><span class=\"key\" style=\"--u:.5\">half</span><span class=\"key\" style=\"--u:1\">all</span>\
         . Select a cell for its worst case. <label>Ops <input id=\"filter\" type=\"search\" \
         placeholder=\"conv\"></label></p><div class=\"scroll\"><table id=\"map\"><thead><tr><th></th>",
    );
    for device in &report.devices {
        let _ = write!(html, "<th colspan=\"{}\">{}</th>", DType::ALL.len(), escape(&device.device));
    }
    html += "</tr><tr><th>op</th>";
    columns.iter().for_each(|(_, dtype)| {
        let _ = write!(html, "<th>{dtype}</th>");
    });
    html += "</tr></thead><tbody>";
    for (op, rows) in ops {
        let _ = write!(html, "<tr data-op=\"{0}\"><th>{0}</th>", escape(op));
        for (i, dtype) in &columns {
            let row = rows.iter().find(|(of, row)| of == i && row.dtype == dtype.name());
            html += &row.map_or_else(|| "<td></td>".into(), |(i, row)| cell(&report.devices[*i], row));
        }
        html += "</tr>";
    }
    html + "</tbody></table></div></section>\n"
}

fn cell(device: &DeviceReport, row: &Row) -> String {
    if row.failed > 0 {
        let case = device.failures.iter().find(|f| f.op == row.op && f.dtype == row.dtype).map(|f| &f.case);
        let text = case.map_or_else(String::new, |case| format!("failed\n{}", reproduction(&device.device, case)));
        return format!("<td class=\"failed\"><button data-detail=\"{}\">fails</button></td>", detail(row, &text));
    }
    if row.passed == 0 {
        let word = if row.deviated > 0 { "deviates" } else { "not run" };
        return format!("<td class=\"other\">{word}</td>");
    }
    let half = |name: &str, seen: &Seen| {
        if seen.cases == 0 {
            return "<i></i>".to_string();
        }
        let mut text = format!(
            "{name}: at most {} ulp and {:.1} % of the bound in {} cases",
            short(seen.max_ulps),
            100.0 * seen.max_used,
            grouped(seen.cases)
        );
        if let Some(case) = &seen.worst {
            text += &format!("\n{}", reproduction(&device.device, case));
        }
        let (used, text) = (seen.max_used.min(1.0), detail(row, &text));
        format!("<button style=\"--u:{used:.3}\" data-detail=\"{text}\">{}</button>", short(seen.max_ulps))
    };
    format!("<td>{}{}</td>", half("values", &row.forward), half("derivatives", &row.gradient))
}

fn detail(row: &Row, text: &str) -> String {
    escape(&format!("{} {}: {text}", row.op, row.dtype))
}
