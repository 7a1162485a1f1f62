//! Finds the file with the debugging information of a program or library: the file itself or a separate one.

use gimli::{Dwarf, EndianArcSlice, RunTimeEndian, SectionId};
use object::{File, Object, ObjectSection};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The gimli reader of DWARF sections.
pub type DwarfReader = EndianArcSlice<RunTimeEndian>;

/// The folder in which distributions put separate debugging information.
const PLACE: &str = "/usr/lib/debug";

/// The DWARF tables of a file, from the file itself or from its separate debug file; `None` if neither has line
/// tables.
pub(crate) fn dwarf(path: &Path, file: &File) -> Option<Dwarf<DwarfReader>> {
    if has_lines(file) {
        return load(file);
    }
    candidates(path, file).into_iter().find_map(|other| {
        let data = fs::read(other).ok()?;
        let other = File::parse(data.as_slice()).ok()?;
        let same = file.build_id().ok().flatten() == other.build_id().ok().flatten();
        if same && has_lines(&other) { load(&other) } else { None }
    })
}

fn has_lines(file: &File) -> bool {
    let section = file.section_by_name(".debug_line").or_else(|| file.section_by_name(".zdebug_line"));
    section.is_some_and(|section| section.size() > 0)
}

/// The paths where separate debug files may be: by build id, then by the name in `.gnu_debuglink`.
fn candidates(path: &Path, file: &File) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    if let Ok(Some(id)) = file.build_id()
        && let Some((first, rest)) = id.split_first()
    {
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        paths.push(PathBuf::from(format!("{PLACE}/.build-id/{first:02x}/{rest}.debug")));
    }
    if let Ok(Some((name, _))) = file.gnu_debuglink()
        && let Some(folder) = path.parent()
    {
        // A name with folders in it could lead to any file.
        let name = String::from_utf8_lossy(name).into_owned();
        if !name.contains('/') {
            paths.push(folder.join(&name));
            paths.push(folder.join(".debug").join(&name));
            paths.push(Path::new(PLACE).join(folder.strip_prefix("/").unwrap_or(folder)).join(&name));
        }
    }
    paths
}

fn load(file: &File) -> Option<Dwarf<DwarfReader>> {
    let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let section = |id: SectionId| -> Result<DwarfReader, gimli::Error> {
        let data = file.section_by_name(id.name()).and_then(|section| section.uncompressed_data().ok());
        Ok(EndianArcSlice::new(Arc::from(data.unwrap_or_default().as_ref()), endian))
    };
    Dwarf::load(section).ok()
}
