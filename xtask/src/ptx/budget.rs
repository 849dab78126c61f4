//! What each kernel may need: a table that is checked in.

use super::usage::Usage;
use crate::process::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// By kernel.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Budget(BTreeMap<String, Allowed>);

/// What one kernel may need.
#[derive(Debug, Serialize, Deserialize)]
struct Allowed {
    #[serde(flatten)]
    most: Usage,
    /// Why registers go to memory, where they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Budget {
    /// The table; empty where there is none yet.
    pub(super) fn read(path: &Path) -> Result<Self> {
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(e) => Err(format!("{}: {e}", path.display()).into()),
        }
    }

    pub(super) fn write(&self, path: &Path) -> Result {
        Ok(std::fs::write(path, serde_json::to_string_pretty(self)? + "\n")?)
    }

    /// Takes what the kernels need now, registers in the eights in which they are given out; reasons stay.
    pub(super) fn bless(&mut self, used: &BTreeMap<String, Usage>) {
        let mut old = std::mem::take(&mut self.0);
        let entry = |(name, most): (&String, &Usage)| {
            let reason = old.remove(name).and_then(|allowed| allowed.reason).filter(|_| most.spill_bytes > 0);
            (
                name.clone(),
                Allowed { most: Usage { registers: most.registers.next_multiple_of(8), ..most.clone() }, reason },
            )
        };
        self.0 = used.iter().map(entry).collect();
    }

    /// What does not fit, one line each.
    pub(super) fn breaches(&self, used: &BTreeMap<String, Usage>) -> Vec<String> {
        let mut found = Vec::new();
        for (name, usage) in used {
            let Some(Allowed { most, reason }) = self.0.get(name) else {
                found.push(format!("{name}: is not in the table: needs {usage:?}"));
                continue;
            };
            let pairs = [
                ("registers", usage.registers, most.registers),
                ("shared bytes", usage.shared_bytes, most.shared_bytes),
                ("spilled bytes", usage.spill_bytes, most.spill_bytes),
            ];
            let over = pairs.into_iter().filter(|(_, used, allowed)| used > allowed);
            found.extend(over.map(|(what, used, allowed)| format!("{name}: {what} {used}, allowed {allowed}")));
            if usage.spill_bytes > 0 && reason.is_none() {
                found.push(format!("{name}: spills {} bytes and the table gives no reason", usage.spill_bytes));
            }
        }
        let gone = self.0.keys().filter(|name| !used.contains_key(*name));
        found.extend(gone.map(|name| format!("{name}: is in the table, and no such kernel was assembled")));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(spill_bytes: u32) -> BTreeMap<String, Usage> {
        [("map".to_string(), Usage { registers: 20, shared_bytes: 512, spill_bytes })].into()
    }

    fn breaches(table: &str, used: &BTreeMap<String, Usage>) -> Vec<String> {
        serde_json::from_str::<Budget>(table).map_or_else(|e| vec![e.to_string()], |budget| budget.breaches(used))
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let fits = r#"{ "map": { "registers": 20, "shared_bytes": 512, "spill_bytes": 0 } }"#;
        assert!(breaches(fits, &used(0)).is_empty());
        assert_eq!(
            breaches(fits, &used(8)),
            ["map: spilled bytes 8, allowed 0", "map: spills 8 bytes and the table gives no reason"]
        );
        let tight = r#"{ "map": { "registers": 19, "shared_bytes": 256 }, "sort": { "registers": 1 } }"#;
        assert_eq!(
            breaches(tight, &used(0)),
            [
                "map: registers 20, allowed 19",
                "map: shared bytes 512, allowed 256",
                "sort: is in the table, and no such kernel was assembled"
            ]
        );
        assert_eq!(breaches("{}", &used(0)).len(), 1);
    }

    #[test]
    fn spills_need_a_reason_which_blessing_keeps() {
        let table =
            r#"{ "map": { "registers": 9, "spill_bytes": 4, "reason": "many inputs" }, "old": { "registers": 1 } }"#;
        let mut budget: Budget = serde_json::from_str(table).unwrap_or_default();
        budget.bless(&used(8));
        assert!(budget.breaches(&used(8)).is_empty(), "{budget:?}");
        budget.bless(&used(0));
        assert!(!budget.breaches(&used(8)).is_empty(), "no spill, no reason any more");
    }
}
