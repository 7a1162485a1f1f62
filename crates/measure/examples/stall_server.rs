//! A server for comparing load generators: `stall_server PORT PERIOD_MS LENGTH_MS` answers at once, but sleeps so long
//! once in every period. A period of 0 is never. It serves until it is ended.
#![allow(unsafe_code)]

#[path = "../tests/load/servers.rs"]
#[allow(dead_code, unreachable_pub, missing_docs)]
mod servers;

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let [port, period, length] = numbers[..] else {
        panic!("three numbers are expected: PORT PERIOD_MS LENGTH_MS");
    };
    let _server = servers::Loop::stalling(port as u16, servers::Stall { period, length });
    loop {
        std::thread::sleep(std::time::Duration::from_secs(3600));
    }
}
