//! Which file was mapped at which address of a process, as the kernel listed it while the process ran.

use super::frame_rules::FrameRules;
use object::{Object, ObjectSegment};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The index of a file in [`Files`].
pub(super) type FileIndex = usize;

/// One mapping of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region {
    begin: u64,
    end: u64,
    offset: u64,
    file: FileIndex,
}

/// The mappings of one process at one time, sorted.
#[derive(Clone, Debug, Default)]
pub(super) struct CodeMap(Vec<Region>);

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileAddress {
    pub(super) file: FileIndex,
    /// The address as the file numbers addresses.
    pub(super) address: u64,
}

/// All files whose code was mapped.
pub(super) struct Files {
    library: &'static [u8],
    indices: HashMap<(String, u64), FileIndex>,
    files: Vec<MappedFile>,
}

/// A file whose code was mapped.
pub(super) struct MappedFile {
    /// Its path; for code without a file, the kernel's name for it.
    pub(super) path: String,
    /// Whether it is the library that records, whose frames are not shown.
    pub(super) is_library: bool,
    content: Option<Result<FileContent, &'static str>>,
    /// The time of the map in which it was found, in nanoseconds since 1970.
    seen: u64,
}

/// What is needed of a file.
pub(super) struct FileContent {
    /// Loadable segments: offset in the file, size, address.
    segments: Vec<(u64, u64, u64)>,
    /// Where the kernel starts the file.
    entry: u64,
    pub(super) rules: FrameRules,
}

impl Files {
    /// Creates a collection; `library` is the file of the library that records.
    pub(super) fn new(library: &'static [u8]) -> Files {
        Files { library, indices: HashMap::new(), files: Vec::new() }
    }

    /// The file with this index.
    pub(super) fn file(&self, index: FileIndex) -> &MappedFile {
        &self.files[index]
    }

    /// Adds the mapping of a line of `/proc/PID/maps` to a map. `library` is an address of the library that records.
    pub(super) fn add(&mut self, map: &mut CodeMap, line: &str, library: u64, seen: u64) -> Option<()> {
        let mut fields = line.splitn(6, ' ');
        let (begin, end) = fields.next()?.split_once('-')?;
        let (begin, end) = (u64::from_str_radix(begin, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        let offset = u64::from_str_radix(fields.nth(1)?, 16).ok()?;
        let inode = fields.nth(1)?.parse().ok()?;
        let path = fields.next().unwrap_or("").trim_start().to_owned();
        let is_library = (begin..end).contains(&library);
        let files = &mut self.files;
        let file = *self.indices.entry((path.clone(), inode)).or_insert_with(|| {
            files.push(MappedFile { path, is_library, content: None, seen });
            files.len() - 1
        });
        let region = Region { begin, end, offset, file };
        let at = map.0.partition_point(|other| other.begin < begin);
        map.0.insert(at, region);
        Some(())
    }

    /// The place of an address in a file, and the file's content. The error says why there is none.
    pub(super) fn place(
        &mut self,
        map: &CodeMap,
        address: u64,
    ) -> Result<(FileAddress, &mut FileContent), &'static str> {
        let region = map.region(address).ok_or("code of no file")?;
        let offset = address - region.begin + region.offset;
        let (library, file) = (self.library, &mut self.files[region.file]);
        let content = file.content.get_or_insert_with(|| match (file.is_library, file.path.is_empty()) {
            (true, _) => FileContent::of(library),
            (_, true) => Err("code of no file"),
            _ => read(&file.path, file.seen),
        });
        let content = content.as_mut().map_err(|why| *why)?;
        let address = content.address(offset).ok_or("a part of a file that is not code")?;
        Ok((FileAddress { file: region.file, address }, content))
    }
}

impl CodeMap {
    fn region(&self, address: u64) -> Option<&Region> {
        let after = self.0.partition_point(|region| region.begin <= address);
        self.0[..after].last().filter(|region| address < region.end)
    }

    /// Whether a mapping contains the address.
    pub(super) fn contains(&self, address: u64) -> bool {
        self.region(address).is_some()
    }
}

fn read(path: &str, seen: u64) -> Result<FileContent, &'static str> {
    const GONE: &str = "a file that is no longer there";
    if !path.starts_with('/') || path.ends_with(" (deleted)") {
        return Err(if path.starts_with('/') { GONE } else { "code of no file" });
    }
    let metadata = Path::new(path).metadata().map_err(|_| GONE)?;
    let changed = metadata.ctime().saturating_mul(1_000_000_000).saturating_add(metadata.ctime_nsec());
    if u64::try_from(changed).unwrap_or(0) > seen {
        return Err("a file that was changed since");
    }
    FileContent::of(&std::fs::read(path).map_err(|_| GONE)?)
}

impl FileContent {
    fn of(data: &[u8]) -> Result<FileContent, &'static str> {
        let file = object::File::parse(data).map_err(|_| "a file that is not an ELF file")?;
        let segments = file
            .segments()
            .map(|segment| (segment.file_range().0, segment.file_range().1, segment.address()))
            .collect();
        Ok(FileContent { segments, entry: file.entry(), rules: FrameRules::of(&file) })
    }

    /// Whether the address is in the first instructions of the file, which have no caller. Those of glibc's loader have
    /// no unwinding entry.
    pub(super) fn is_entry(&self, address: u64) -> bool {
        self.entry != 0 && (self.entry..self.entry.saturating_add(256)).contains(&address)
    }

    fn address(&self, offset: u64) -> Option<u64> {
        let within = |(begin, size, _): &&(u64, u64, u64)| offset >= *begin && offset - begin < *size;
        self.segments.iter().find(within).map(|(begin, _, address)| offset - begin + address)
    }
}

#[cfg(test)]
mod tests {
    use super::super::registers::{RECORDED, Registers};
    use super::*;
    use scruple_fuzz::Corpus;

    #[test]
    fn damaged_unwinding_entries_are_survived() {
        assert!(FileContent::of(include_bytes!("../../../../fuzz/corpus/elf/small")).is_ok());
        Corpus::named("elf").is_survived_by(|data| {
            let Ok(mut content) = FileContent::of(data) else { return };
            for offset in (0..data.len() as u64).step_by(64) {
                let Some(address) = content.address(offset) else { continue };
                let mut words = [4096; RECORDED];
                words[0] = address;
                content.rules.step(&Registers::recorded(words), address, true, &|at| Some(at ^ 0x5555));
            }
        });
    }
}
