//! Short ways to build and run kernels.

use ptx_emulator::{Arg, Device, Launch, Module, Options};

/// A module of one kernel `k` with the parameters `p0`, `p1`, … as addresses.
///
/// With PTX_EMULATOR_DUMP set to a folder, every module is written there too, for an assembler to look at.
pub(crate) fn kernel(params: usize, registers: &str, body: &str) -> String {
    let list: Vec<_> = (0..params).map(|i| format!(".param .u64 p{i}")).collect();
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k({})\n{{\n{registers}\n{body}\n    ret;\n}}\n",
        list.join(", ")
    );
    if let Some(folder) = std::env::var_os("PTX_EMULATOR_DUMP") {
        let mut hasher = std::hash::DefaultHasher::new();
        std::hash::Hash::hash(&text, &mut hasher);
        let name = format!("{:016x}.ptx", std::hash::Hasher::finish(&hasher));
        std::fs::write(std::path::Path::new(&folder).join(name), &text).unwrap();
    }
    text
}

/// The registers that most kernels need.
pub(crate) const REGISTERS: &str = ".reg .pred %p<10>; .reg .b16 %h<40>; .reg .b32 %r<60>; .reg .b64 %rd<60>; \
     .reg .f32 %f<40>; .reg .f64 %d<20>;";

/// Runs `body` in 32 threads with one value of each input per thread: `%rd0` is the thread's byte offset for `size`
/// bytes, parameter 0 the output, the others the inputs.
pub(crate) fn run_lanes(
    body: &str,
    output_bytes: usize,
    inputs: &[Vec<u64>],
    sizes: &[usize],
    options: Options,
) -> Vec<u64> {
    let mut prologue = String::from("mov.u32 %r50, %tid.x; cvt.u64.u32 %rd50, %r50;\n");
    prologue += &format!("ld.param.u64 %rd51, [p0]; mad.lo.u64 %rd40, %rd50, {output_bytes}, %rd51;\n");
    for (i, size) in sizes.iter().enumerate() {
        let p = i + 1;
        prologue += &format!("ld.param.u64 %rd51, [p{p}]; mad.lo.u64 %rd{}, %rd50, {size}, %rd51;\n", 40 + p);
        let load = match size {
            2 => format!("ld.global.b16 %h{p}, [%rd{}];\n", 40 + p),
            4 => format!("ld.global.b32 %r{p}, [%rd{}];\n", 40 + p),
            _ => format!("ld.global.b64 %rd{p}, [%rd{}];\n", 40 + p),
        };
        prologue += &load;
    }
    let store = match output_bytes {
        2 => "st.global.b16 [%rd40], %h0;",
        4 => "st.global.b32 [%rd40], %r0;",
        _ => "st.global.b64 [%rd40], %rd0;",
    };
    let text = kernel(inputs.len() + 1, REGISTERS, &format!("{prologue}{body}\n{store}"));
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut device = Device::new(options);
    let loaded = device.load(&module).unwrap();
    let lanes = inputs.first().map_or(32, Vec::len).min(1024) as u32;
    let out = device.alloc::<u8>(output_bytes * lanes as usize).unwrap();
    let mut args = vec![Arg::buffer(&out)];
    for (values, size) in inputs.iter().zip(sizes) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()[..*size].to_vec()).collect();
        args.push(Arg::buffer(&device.upload(&bytes).unwrap()));
    }
    device.launch(&loaded, "k", Launch::linear(1, lanes), &args).unwrap();
    let bytes = device.download(&out).unwrap_or_else(|error| panic!("{error}\n{text}"));
    bytes.chunks_exact(output_bytes).map(number).collect()
}

/// Little-endian bytes as a number.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

/// Numbers that look random and always are the same.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// From -1 to 1.
    pub(crate) fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    pub(crate) fn units(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.unit()).collect()
    }
}
