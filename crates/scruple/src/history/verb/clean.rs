//! `scruple history clean`: says how much disk space builds take, and frees it.

use crate::cli::values;
use crate::fault::{Code, Fault};
use crate::history::args::CleanArgs;
use crate::paths;
use crate::render::output;
use crate::versions;
use crate::versions::clean::{FreedSpace, clean as free};
use scruple_core::plural::counted;
use scruple_core::unit::{Unit, quantity};
use std::path::{Path, PathBuf};

/// Frees the requested builds, and reports how much space that made.
pub fn clean(args: &CleanArgs) -> Result<Code, Fault> {
    let older_than = args.older_than.as_deref().map(values::age).transpose()?;
    let folders: Vec<PathBuf> = match args.all {
        true => {
            let all = std::fs::read_dir(paths::history_folder()?).into_iter().flatten().flatten();
            let mut all: Vec<PathBuf> = all.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
            all.sort_unstable();
            all
        }
        false => {
            let place = versions::place_of(args.repo.as_deref())?;
            Some(versions::folder_of(&place)?).filter(|folder| folder.is_dir()).into_iter().collect()
        }
    };
    let mut text = String::new();
    let mut fault = None;
    for folder in folders {
        match free(folder.clone(), older_than, args.dry_run) {
            Ok(freed) => text.push_str(&line(&folder, &freed, args.dry_run)),
            // A folder that is in use does not prevent the others from being cleaned.
            Err(error) if args.all => fault = Some(error),
            Err(error) => return Err(error),
        }
    }
    if text.is_empty() && fault.is_none() {
        text = "nothing to remove: no version was built here\n".to_owned();
    }
    output::print(&text)?;
    fault.map_or(Ok(Code::Fine), Err)
}

fn line(folder: &Path, freed: &FreedSpace, dry_run: bool) -> String {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    // The name of the folder consists of the repository's name and a digest.
    let name = name.rsplit_once('-').map_or(&*name, |(name, _)| name);
    let size = |bytes: u64| quantity(bytes as f64, &Unit::Bytes);
    let verb = if dry_run { "would free" } else { "freed" };
    let left = match freed.left {
        0 => String::new(),
        left => format!("; {} stay", size(left)),
    };
    format!(
        "{name}: {verb} {} ({}){left}, in ‘{}’\n",
        size(freed.bytes),
        counted(freed.builds, "build"),
        folder.display()
    )
}
