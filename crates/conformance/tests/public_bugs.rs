//! Inputs from public bug reports on the CPU.

use conformance::suite::public_bugs;

#[test]
fn no_public_bug_is_repeated() {
    let device = backend_cpu::device();
    let failures: Vec<String> =
        public_bugs().filter_map(|bug| bug.run(&device).err()).map(|failure| failure.to_string()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
