//! The empty program: the cost of a launch without any work.

use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The machine code of `exit(0)`, with no C library around it.
#[cfg(target_arch = "x86_64")]
const CODE: [u8; 12] = [0xb8, 0x3c, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05, 0x0f, 0x0b, 0x90];
#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const CODE: [u8; 12] = [0x00, 0x00, 0x80, 0xd2, 0xa8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;

/// An ELF file of one segment that exits immediately: header, one program header, code.
fn image() -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    let mut file = Vec::new();
    file.extend([0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for half in [2_u16, MACHINE] {
        file.extend(half.to_le_bytes());
    }
    file.extend(1_u32.to_le_bytes());
    for word in [BASE + HEADERS, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend(0_u32.to_le_bytes());
    for half in [64_u16, 56, 1, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    let size = HEADERS + CODE.len() as u64;
    file.extend(1_u32.to_le_bytes());
    file.extend(5_u32.to_le_bytes());
    for word in [0, BASE, BASE, size, size, 0x1000] {
        file.extend(word.to_le_bytes());
    }
    file.extend(CODE);
    file
}

/// Writes the empty program into a folder and returns its path.
pub fn write_empty_program(folder: &Path) -> io::Result<PathBuf> {
    let path = folder.join(format!("empty-{}", std::process::id()));
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o755).open(&path)?;
    file.write_all(&image())?;
    Ok(path)
}
