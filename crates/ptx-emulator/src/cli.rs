//! The command: its arguments, and what it prints.

mod json;
mod npy;
mod spec;

use super::USAGE;
use ptx_emulator::{
    Approximation, Device, Error, ErrorKind, Kernel, Launch, MmaMode, Module, Options, Order, ParseOptions,
};
use spec::Prepared;

type Result<T, E = String> = std::result::Result<T, E>;

/// True if nothing was found.
pub(super) fn run(args: &[String]) -> Result<bool> {
    match args.first().map(String::as_str) {
        Some("run") => execute(&args[1..]),
        Some("check") => check(&args[1..]),
        Some("list") => list(&args[1..]),
        Some("-h" | "--help" | "help") => {
            println!("{USAGE}");
            Ok(true)
        }
        Some("-V" | "--version") => {
            println!("ptx-emulator {}", env!("CARGO_PKG_VERSION"));
            Ok(true)
        }
        Some(other) => Err(format!("unknown command `{other}`: expected run, check or list")),
        None => Err(format!("expected a command\n{USAGE}")),
    }
}

fn parse(path: &str, strict: bool) -> Result<Module> {
    let text = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    // Module texts as drivers take them may end in a zero byte.
    let text = String::from_utf8_lossy(&text);
    let module = Module::parse_with(text.trim_end_matches('\0'), ParseOptions::strict(strict));
    let module = module.map_err(|error| format!("{path}:{error}"))?;
    for warning in module.warnings() {
        eprintln!("{path}:{warning}");
    }
    Ok(module)
}

fn check(args: &[String]) -> Result<bool> {
    let (mut path, mut strict) = (None, false);
    for arg in args {
        match arg.as_str() {
            "--strict" => strict = true,
            other if path.is_none() && !other.starts_with("--") => path = Some(other),
            other => return Err(format!("unknown argument `{other}`")),
        }
    }
    let path = path.ok_or("check: expected a file")?;
    std::fs::metadata(path).map_err(|error| format!("{path}: {error}"))?;
    match parse(path, strict) {
        Ok(module) => {
            println!("{path}: {} kernels, no errors", module.kernels().count());
            Ok(true)
        }
        Err(message) => {
            println!("{message}");
            Ok(false)
        }
    }
}

fn list(args: &[String]) -> Result<bool> {
    let [path] = args else { return Err("list: expected one file".into()) };
    let module = parse(path, false)?;
    let (major, minor) = module.version();
    println!("{path}: PTX {major}.{minor} for {}", module.target());
    for kernel in module.kernels() {
        println!("{}", describe(&kernel));
        for (i, param) in kernel.params().iter().enumerate() {
            let pointer = if param.is_pointer { ", pointer" } else { "" };
            println!("  {i}: {} .{}, {} bytes at {}{pointer}", param.name, param.ty.name(), param.bytes, param.offset);
        }
    }
    Ok(true)
}

fn describe(kernel: &Kernel<'_>) -> String {
    let threads = kernel.max_threads().map_or(String::new(), |[x, y, z]| format!(", blocks of {x}x{y}x{z} threads"));
    format!(
        "{}: {} instructions, {} registers, {} bytes of shared and {} of local memory{threads}",
        kernel.name(),
        kernel.instructions(),
        kernel.registers(),
        kernel.shared_bytes(),
        kernel.local_bytes()
    )
}

#[derive(Default)]
struct Request {
    path: String,
    entry: String,
    launch: Option<[u32; 3]>,
    block: Option<[u32; 3]>,
    shared: u32,
    args: Vec<String>,
    saves: Vec<(usize, String)>,
    strict: bool,
    stats: bool,
    json: bool,
    options: Options,
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T> {
    value.parse().map_err(|_| format!("{name} {value}: expected a number"))
}

fn triple(name: &str, value: &str) -> Result<[u32; 3]> {
    let mut triple = [1; 3];
    let parts: Vec<&str> = value.split(',').collect();
    if parts.len() > 3 {
        return Err(format!("{name} {value}: expected one to three numbers"));
    }
    for (axis, part) in triple.iter_mut().zip(parts) {
        *axis = number(name, part)?;
    }
    Ok(triple)
}

fn request(args: &[String]) -> Result<Request> {
    let mut request = Request { options: Options { eager: true, ..Options::default() }, ..Request::default() };
    let mut seed = None;
    let mut args = args.iter();
    while let Some(name) = args.next() {
        let mut value = || args.next().ok_or(format!("{name}: expected a value"));
        let checks = &mut request.options.checks;
        match name.as_str() {
            "--entry" => request.entry = value()?.clone(),
            "--grid" => request.launch = Some(triple(name, value()?)?),
            "--block" => request.block = Some(triple(name, value()?)?),
            "--shared" => request.shared = number(name, value()?)?,
            "--arg" => request.args.push(value()?.clone()),
            "--save" => {
                let value = value()?;
                let (index, path) = value.split_once('=').ok_or(format!("--save {value}: expected N=FILE.npy"))?;
                request.saves.push((number(name, index)?, path.into()));
            }
            "--seed" => seed = Some(number(name, value()?)?),
            "--order" => {
                request.options.order = match value()?.as_str() {
                    "ascending" => Order::Ascending,
                    "descending" => Order::Descending,
                    "seeded" => Order::Seeded(0),
                    other => return Err(format!("--order {other}: expected ascending, descending or seeded")),
                };
            }
            "--perturb" => request.options.approximation = Approximation::Perturbed(number(name, value()?)?),
            "--mma" => {
                request.options.mma = match value()?.as_str() {
                    "ieee" => MmaMode::Ieee,
                    "hopper" => MmaMode::Hopper,
                    other => return Err(format!("--mma {other}: expected ieee or hopper")),
                };
            }
            "--fuel" => request.options.fuel = number(name, value()?)?,
            "--memory" => request.options.memory_bytes = number(name, value()?)?,
            "--allow" => match value()?.as_str() {
                "races" => checks.races = false,
                "uninitialised-memory" => checks.uninitialised_memory = false,
                "uninitialised-registers" => checks.uninitialised_registers = false,
                "exited-at-barrier" => checks.exited_at_barrier = false,
                "division-by-zero" => checks.division_by_zero = false,
                other => return Err(format!("--allow {other}: no such check")),
            },
            "--strict" => {
                request.strict = true;
                checks.unwritten_reads = true;
            }
            "--stats" => request.stats = true,
            "--json" => request.json = true,
            other if request.path.is_empty() && !other.starts_with("--") => request.path = other.into(),
            other => return Err(format!("unknown argument `{other}`")),
        }
    }
    if let Some(seed) = seed {
        request.options.order = Order::Seeded(seed);
    }
    request.options.stats = request.stats;
    if request.path.is_empty() || request.entry.is_empty() {
        return Err("run: expected a file and --entry".into());
    }
    Ok(request)
}

fn execute(args: &[String]) -> Result<bool> {
    let request = request(args)?;
    let module = parse(&request.path, request.strict)?;
    let Some(kernel) = module.kernel(&request.entry) else {
        let names: Vec<_> = module.kernels().map(|kernel| kernel.name().to_string()).collect();
        return Err(format!("{}: no such kernel: the file has {}", request.entry, names.join(", ")));
    };
    if kernel.params().len() != request.args.len() {
        let expected = kernel.params().len();
        return Err(format!("{}: takes {expected} arguments: found {}", request.entry, request.args.len()));
    }
    let grid = request.launch.ok_or("run: expected --grid")?;
    let block = request.block.ok_or("run: expected --block")?;

    let usage = |error: Error| error.to_string();
    let mut device = Device::new(request.options);
    let loaded = device.load(&module).map_err(usage)?;
    let mut prepared: Vec<Prepared> = Vec::new();
    for (spec, param) in request.args.iter().zip(kernel.params()) {
        prepared.push(spec::prepare(&mut device, spec, &param.name)?);
    }
    let values: Vec<_> = prepared.iter().map(|prepared| prepared.arg.clone()).collect();
    let launch = Launch::new(grid, block).shared(request.shared);
    let result = device.launch(&loaded, &request.entry, launch, &values);
    let stats = device.take_stats();
    let error = match result {
        Ok(()) => None,
        Err(error) if error.kind() == ErrorKind::Finding => Some(error),
        Err(error) => return Err(error.to_string()),
    };
    let report = error.as_ref().and_then(Error::report);
    device.reset();
    for (index, path) in &request.saves {
        let buffer = prepared.get(*index).and_then(|prepared| prepared.buffer.as_ref());
        let buffer = buffer.ok_or(format!("--save {index}={path}: argument {index} is no buffer"))?;
        let mut bytes = vec![0; buffer.bytes];
        device.read_bytes(buffer.address, &mut bytes).map_err(usage)?;
        std::fs::write(path, npy::write(buffer.descr, &buffer.shape, &bytes)).map_err(|e| format!("{path}: {e}"))?;
    }
    if request.json {
        println!("{}", json::outcome(report, request.stats.then_some(&stats)));
    } else {
        match report {
            Some(report) => println!("{report}"),
            None => println!("{}: clean", request.entry),
        }
        if request.stats {
            print!("{}", spec::stats_text(&stats));
        }
    }
    Ok(report.is_none())
}
