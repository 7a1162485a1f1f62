//! Finds the process that listens on a port or a Unix socket.

use super::{Address, Target};
use crate::process_stat::{parent, processes};
use std::fs;
use std::path::Path;

/// The process that listens at a local address of a target; if several related processes share the socket, the topmost
/// one. `None` if there is none, or it may not be inspected.
pub fn listening_at(target: &Target) -> Option<i32> {
    if !target.is_local() {
        return None;
    }
    target.addresses.iter().find_map(|address| match address {
        Address::Tcp(address) => listening_on_port(address.port()).ok(),
        Address::Unix(path) => listening_on_socket(path).ok(),
    })
}

/// The process that listens on a TCP port; if several related processes share the socket, the topmost one.
///
/// # Errors
/// Fails if no process listens there, or the listener may not be inspected.
pub fn listening_on_port(port: u16) -> Result<i32, String> {
    let mut sockets = Vec::new();
    for file in ["/proc/net/tcp", "/proc/net/tcp6"] {
        sockets.extend(listeners(&fs::read_to_string(file).unwrap_or_default(), port));
    }
    owner(&sockets, &format!("port {port}"))
}

/// The process that listens on a Unix socket; if several related processes share it, the topmost one.
///
/// # Errors
/// Fails as [`listening_on_port`] does.
pub fn listening_on_socket(path: &Path) -> Result<i32, String> {
    let wanted = path.to_string_lossy();
    let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let sockets: Vec<u64> = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        // The flags of a socket that accepts connections.
        .filter(|words| words.get(7) == Some(&&*wanted) && words.get(3) == Some(&"00010000"))
        .filter_map(|words| words.get(6)?.parse().ok())
        .collect();
    owner(&sockets, &format!("the socket {wanted}"))
}

/// The inodes of the sockets that listen on a port, from the text of /proc/net/tcp.
fn listeners(table: &str, port: u16) -> Vec<u64> {
    const LISTENING: &str = "0A";
    table
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.get(3) == Some(&LISTENING))
        .filter(|words| {
            let local = words.get(1).and_then(|address| address.rsplit_once(':'));
            local.is_some_and(|(_, text)| u16::from_str_radix(text, 16) == Ok(port))
        })
        .filter_map(|words| words.get(9)?.parse().ok())
        .collect()
}

fn owner(sockets: &[u64], place: &str) -> Result<i32, String> {
    if sockets.is_empty() {
        return Err(format!("no process listens on {place}"));
    }
    let wanted: Vec<String> = sockets.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let holders: Vec<i32> = processes().filter(|pid| holds(*pid, &wanted)).collect();
    let top =
        holders.iter().copied().find(|pid| parent(*pid).is_none_or(|parent| !holders.contains(&parent)));
    top.ok_or_else(|| {
        format!(
            "a process listens on {place}, but Scruple may not see which: run as its user, or name the process"
        )
    })
}

fn holds(pid: i32, sockets: &[String]) -> bool {
    fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten().any(|entry| {
        fs::read_link(entry.path()).is_ok_and(|target| {
            target.to_str().is_some_and(|target| sockets.iter().any(|socket| socket == target))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    #[test]
    fn we_find_ourselves() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        assert_eq!(listening_on_port(port), Ok(std::process::id() as i32));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let unix = UnixListener::bind(&path).expect("a socket");
        assert_eq!(listening_on_socket(&path), Ok(std::process::id() as i32));
        drop((listener, unix));
        // A child that another test is starting may hold the socket a moment longer.
        let began = std::time::Instant::now();
        while listening_on_port(port).is_ok() && began.elapsed().as_secs() < 10 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(listening_on_port(port).expect_err("closed").contains("no process listens"));
    }

    #[test]
    fn only_listening_sockets_of_the_port_count() {
        let table = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 222 1 0 20 4 30 10 -1
   2: 00000000:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1 0 100 0 0 10 0
";
        assert_eq!(listeners(table, 8080), [111]);
    }
}
