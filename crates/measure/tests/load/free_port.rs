//! Ports for servers that tests start; the tests of `scruple` use this file as well.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// A port on which a server may be started, also several times. It lies below those that the kernel gives to clients
/// and to servers that ask for any, so that no other program takes it while the server does not run.
pub fn free_port() -> String {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id().wrapping_mul(97).wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed));
        let port = 20_000 + (number % 12_000) as u16;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port.to_string();
        }
    }
}
