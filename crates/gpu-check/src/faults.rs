//! What the driver says of a text that it refuses, and of a kernel that faults: the last thing its process does.

use backend_cuda::driver::Launch;
use tensor_core::{Result, Tensor};

use crate::device::Subject;
use crate::record::Record;

/// Uses a register that it does not declare.
const UNDECLARED: &str = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry broken(.param .u64 to)\n{\n    \
                          ld.param.u64 %to, [to];\n    ret;\n}\n";

/// Writes where nothing is.
const NOWHERE: &str = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry broken(.param .u64 to)\n{\n    \
                       .reg .b64 %to;\n    ld.param.u64 %to, [to];\n    st.global.u32 [%to], 1;\n    ret;\n}\n";

pub(crate) fn run(subject: &Subject, record: &mut Record) -> Result<()> {
    let x = Tensor::ones([4], &subject.device)?;
    match subject.driver.load(UNDECLARED, "broken") {
        Ok(_) => record.fail("a text with an undeclared register was not refused"),
        Err(error) => {
            let said = error.to_string();
            record.note(format!("refused: {said}"));
            if !said.contains("PTX is refused: kernel broken: ") || !said.contains("%to") {
                record.fail("the error does not show what the compiler said of the register %to");
            }
        }
    }
    if x.add(1.0)?.to_vec::<f32>()? != [2.0; 4] {
        record.fail("after a refused text the device computes something else");
    }

    let function = subject.driver.load(NOWHERE, "broken")?;
    let launch = Launch { function, grid: [1; 3], block: [1; 3], shared_bytes: 0, args: &64u64.to_ne_bytes() };
    let launched = subject.driver.launch(launch);
    let waited = launched.and_then(|()| subject.device.synchronize());
    for (what, found) in [("waiting", waited), ("reading a tensor", x.to_vec::<f32>().map(drop))] {
        match found {
            Ok(()) => record.fail(format!("{what} after a write to address 64 reports nothing")),
            Err(error) => {
                record.note(format!("{what}: {error}"));
                if !error.is_device_lost() {
                    record.fail(format!("{what}: the error is not that of a lost device"));
                }
            }
        }
    }
    Ok(())
}
