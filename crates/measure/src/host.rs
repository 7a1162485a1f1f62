//! Facts about this machine, and properties of it that disturb measurements.

use scruple_core::provenance::Provenance;
use scruple_stats::sorting::SortedMap;
use std::fs;
use std::path::Path;

/// The environment variables that commonly change what is measured.
const TELLING_VARIABLES: &[&str] = &[
    "LANG",
    "LC_ALL",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "MALLOC_ARENA_MAX",
    "GLIBC_TUNABLES",
    "GOMAXPROCS",
    "GOGC",
    "GHCRTS",
    "JAVA_TOOL_OPTIONS",
    "NODE_OPTIONS",
    "PYTHONMALLOC",
    "PYTHONHASHSEED",
    "RUSTFLAGS",
    "OMP_NUM_THREADS",
];

/// The provenance of a run in this folder. Facts that cannot be read are left out, not guessed.
pub fn provenance(folder: &Path) -> Provenance {
    let info = read("/proc/cpuinfo");
    let cpu = field(&info, &["model name", "Model", "Processor"]).unwrap_or("unknown processor").to_owned();
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    Provenance {
        machine_class: machine_class(&cpu, cores),
        cpu,
        cores,
        memory: memory_total(),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        os: os_name(),
        load: load(),
        virtualized: virtualized(&info),
        governor: governor(),
        commit: None,
        dirty: None,
        folder: folder.display().to_string(),
        environment: TELLING_VARIABLES
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
            .collect(),
        programs: SortedMap::new(),
        toolchains: SortedMap::new(),
        libraries: SortedMap::new(),
        code: None,
        tool: None,
        nodes: Vec::new(),
    }
}

/// The one-minute load average.
pub fn load() -> f64 {
    read("/proc/loadavg").split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

/// The name of this machine in its network, without white space; empty if it cannot be read.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.split_whitespace().collect()
}

/// The frequency governor of the first core, where the kernel reports one.
pub fn governor() -> Option<String> {
    let text = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    (!text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// Whether boost frequencies are enabled, where the kernel reports it.
pub fn boost() -> Option<bool> {
    match read("/sys/devices/system/cpu/intel_pstate/no_turbo").trim() {
        "0" => return Some(true),
        "1" => return Some(false),
        _ => {}
    }
    match read("/sys/devices/system/cpu/cpufreq/boost").trim() {
        "1" => Some(true),
        "0" => Some(false),
        _ => None,
    }
}

fn machine_class(cpu: &str, cores: u32) -> String {
    let mut name = String::new();
    for c in cpu.chars() {
        match c {
            c if c.is_ascii_alphanumeric() || c == '.' => name.push(c.to_ascii_lowercase()),
            _ if !name.ends_with('-') && !name.is_empty() => name.push('-'),
            _ => {}
        }
    }
    let name = name.replace("-r-", "-").replace("-tm-", "-");
    format!("{}/{cores}/{}", name.trim_end_matches('-'), std::env::consts::ARCH)
}

fn memory_total() -> u64 {
    let info = read("/proc/meminfo");
    let kilobytes =
        field(&info, &["MemTotal"]).and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

fn os_name() -> String {
    let release = read("/etc/os-release");
    release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map_or_else(|| std::env::consts::OS.to_owned(), |name| name.trim_matches('"').to_owned())
}

fn virtualized(cpuinfo: &str) -> Option<String> {
    let hypervisor = cpuinfo.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor"));
    let product = read("/sys/class/dmi/id/product_name");
    let product = product.trim();
    match (hypervisor, product) {
        (false, _) => None,
        (true, "") => Some("yes".to_owned()),
        (true, name) => Some(name.to_owned()),
    }
}

fn field<'a>(text: &'a str, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| {
        text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == *name).then(|| value.trim())
        })
    })
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
