//! The functions inside the C library's allocator. Which of them run depends on the sizes and the order of all
//! requests, so they say nothing by themselves. Their cost counts for the function that the program called.

/// The functions of the C library through which programs allocate and free.
const ENTRIES: [&str; 10] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "cfree",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
];

/// Whether a function is one through which programs allocate and free, by its name.
pub fn is_entry_of_allocator(name: &str) -> bool {
    ENTRIES.contains(&name)
}

/// The file name of the C library, without its version.
pub const C_LIBRARY: &str = "libc.so";

#[cfg(test)]
pub mod tests;
