//! System calls that the standard library does not offer.
#![expect(unsafe_code, reason = "foreign functions")]

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// The size of a memory page.
pub(super) fn page_size() -> u32 {
    // SAFETY: takes no pointers.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u32::try_from(size).unwrap_or(4096)
}

/// Whether the file may be mapped as code, which is not possible if its file system is mounted noexec.
pub(super) fn can_map_code(file: &File) -> bool {
    let protection = libc::PROT_READ | libc::PROT_EXEC;
    // SAFETY: a fresh mapping at an address of the kernel's choice, which nobody reads.
    let at = unsafe { libc::mmap(ptr::null_mut(), 4096, protection, libc::MAP_PRIVATE, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED {
        return false;
    }
    // SAFETY: exactly the mapping made above.
    unsafe { libc::munmap(at, 4096) };
    true
}

/// Creates a file that exists only in memory.
pub(super) fn memory_file(name: &CStr) -> io::Result<File> {
    // SAFETY: `name` is a terminated string.
    let file = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor just made, which nobody else owns.
    Ok(unsafe { File::from_raw_fd(file) })
}

/// The real user and group, which programs started by this process have.
pub(crate) fn user_and_group() -> (u32, u32) {
    // SAFETY: neither takes arguments nor can fail.
    unsafe { (libc::getuid(), libc::getgid()) }
}

/// Whether a program file grants capabilities to those who run it.
pub(crate) fn has_capabilities(path: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: both are terminated strings; with length 0 only the size of the value is asked for.
    unsafe { libc::getxattr(path.as_ptr(), c"security.capability".as_ptr(), ptr::null_mut(), 0) > 0 }
}
