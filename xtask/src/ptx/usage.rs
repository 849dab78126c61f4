//! What a kernel needs of the machine, as `ptxas --verbose` says it.

use serde::{Deserialize, Serialize};

/// What one kernel needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Usage {
    /// Registers of a thread.
    pub(super) registers: u32,
    /// Static shared memory of a block.
    #[serde(default)]
    pub(super) shared_bytes: u32,
    /// Registers that went to memory, stores and loads together.
    #[serde(default)]
    pub(super) spill_bytes: u32,
}

impl Usage {
    /// The larger of each.
    pub(super) fn raise_to(&mut self, other: &Self) {
        self.registers = self.registers.max(other.registers);
        self.shared_bytes = self.shared_bytes.max(other.shared_bytes);
        self.spill_bytes = self.spill_bytes.max(other.spill_bytes);
    }
}

/// The number of the target that a module names: 80 for `.target sm_80`.
pub(super) fn target(text: &str) -> Option<u32> {
    let rest = text.split_once(".target sm_")?.1;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// What each entry of a module needs.
pub(super) fn parse(said: &str) -> Result<Vec<(String, Usage)>, String> {
    let mut found: Vec<(String, Usage)> = Vec::new();
    let mut is_complete = true;
    for line in said.lines() {
        if let Some(name) = line.split_once("Compiling entry function '").and_then(|(_, rest)| rest.split('\'').next())
        {
            found.push((name.to_string(), Usage::default()));
            is_complete = false;
        }
        let Some((_, usage)) = found.last_mut() else { continue };
        if let Some(number) = before(line, " registers") {
            usage.registers = number;
            is_complete = true;
        }
        usage.shared_bytes = before(line, " bytes smem").unwrap_or(usage.shared_bytes);
        usage.spill_bytes += before(line, " bytes spill stores").unwrap_or(0);
        usage.spill_bytes += before(line, " bytes spill loads").unwrap_or(0);
    }
    if found.is_empty() || !is_complete { Err(format!("ptxas names no registers: {}", said.trim())) } else { Ok(found) }
}

/// The number right before a unit.
fn before(line: &str, unit: &str) -> Option<u32> {
    let (head, _) = line.split_once(unit)?;
    head.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'cube_f64' for 'sm_90'
ptxas info    : Function properties for cube_f64
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 8 bytes cumulative stack size, 2048 bytes smem
ptxas info    : Compile time = 2.261 ms
ptxas info    : Compiling entry function 'map' for 'sm_90'
ptxas info    : Function properties for map
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers, 380 bytes cmem[0]
";

    #[test]
    fn what_ptxas_says_is_read() {
        let usage = |registers, shared_bytes, spill_bytes| Usage { registers, shared_bytes, spill_bytes };
        let want = vec![("cube_f64".to_string(), usage(10, 2048, 16)), ("map".to_string(), usage(255, 0, 0))];
        assert_eq!(parse(SAID), Ok(want));
        assert!(parse("ptxas info    : 0 bytes gmem").is_err(), "no kernel");
        let cut = SAID.split_once("ptxas info    : Used 255").map(|(head, _)| head);
        assert!(cut.is_some_and(|said| parse(said).is_err()), "a kernel without its registers");
    }

    #[test]
    fn a_module_names_its_target() {
        assert_eq!(target(".version 7.8\n.target sm_80\n.address_size 64"), Some(80));
        assert_eq!(target(".version 7.8"), None);
    }
}
