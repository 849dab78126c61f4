//! Findings and counts as JSON.

use ptx_emulator::{Report, Stats};

fn text(value: &str) -> String {
    let mut out = String::from('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if (c as u32) < 0x20 => out += &format!("\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn object(fields: &[(&str, String)]) -> String {
    let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{}: {value}", text(name))).collect();
    format!("{{{}}}", fields.join(", "))
}

fn optional<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or("null".into(), show)
}

fn triple(values: [u32; 3]) -> String {
    format!("[{}, {}, {}]", values[0], values[1], values[2])
}

fn report(report: &Report) -> String {
    let operand = |(name, value): &(String, Option<u64>)| {
        object(&[("name", text(name)), ("value", optional(*value, |value| value.to_string()))])
    };
    let operands: Vec<_> = report.operands.iter().map(operand).collect();
    let allocation = optional(report.allocation.as_ref(), |a| {
        object(&[("name", text(&a.name)), ("bytes", a.bytes.to_string()), ("offset", a.offset.to_string())])
    });
    let other = optional(report.other.as_ref(), |other| {
        object(&[
            ("what", text(other.what)),
            ("line", other.line.to_string()),
            ("text", text(&other.text)),
            ("block", triple(other.block)),
            ("warp", other.warp.to_string()),
            ("thread", optional(other.thread, triple)),
        ])
    });
    object(&[
        ("finding", text(report.finding.name())),
        ("message", text(&report.message)),
        ("kernel", text(&report.kernel)),
        ("line", report.line.to_string()),
        ("column", report.column.to_string()),
        ("text", text(&report.text)),
        ("block", triple(report.block)),
        ("warp", report.warp.to_string()),
        ("lanes", report.lanes.to_string()),
        ("thread", triple(report.thread)),
        ("space", optional(report.space, |space| text(space.name()))),
        ("address", optional(report.address, |address| address.to_string())),
        ("allocation", allocation),
        ("operands", format!("[{}]", operands.join(", "))),
        ("other", other),
        ("seed", optional(report.seed, |seed| seed.to_string())),
    ])
}

fn counts(stats: &Stats) -> String {
    let by_opcode: Vec<_> = stats.by_opcode.iter().map(|(name, count)| (name.as_str(), count.to_string())).collect();
    object(&[
        ("blocks", stats.blocks.to_string()),
        ("warp_instructions", stats.warp_instructions.to_string()),
        ("lane_instructions", stats.lane_instructions.to_string()),
        ("shared_requests", stats.shared_requests.to_string()),
        ("bank_conflict_factor", format!("{:.4}", stats.bank_conflict_factor())),
        ("global_requests", stats.global_requests.to_string()),
        ("coalescing_factor", format!("{:.4}", stats.coalescing_factor())),
        ("matrix_macs", stats.matrix_macs.to_string()),
        ("by_opcode", object(&by_opcode)),
    ])
}

/// One object: whether it is clean, what was found, and the counts.
pub(super) fn outcome(found: Option<&Report>, stats: Option<&Stats>) -> String {
    object(&[
        ("clean", found.is_none().to_string()),
        ("report", optional(found, report)),
        ("stats", optional(stats, counts)),
    ])
}
