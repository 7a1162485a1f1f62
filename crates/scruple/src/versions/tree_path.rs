//! Paths of files below the top of a version's tree.

use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::{fmt, fs, io};

/// A path that names something below the top of a tree, or the top itself. Scruple removes, replaces and copies what
/// such paths name, so none may lead out of the tree: not an absolute one, and none with `..`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TreePath(String);

impl TreePath {
    /// Returns the path from the top of the tree, without `.`; empty for the top itself.
    pub fn below_top(&self) -> PathBuf {
        Path::new(&self.0).components().filter(|part| matches!(part, Component::Normal(_))).collect()
    }

    /// Returns the path in a tree, up to the first link that leads out of the tree, if there is one.
    fn up_to_the_way_out(&self, tree: &Path) -> io::Result<(PathBuf, bool)> {
        let (top, mut at) = (tree.canonicalize()?, tree.to_owned());
        for part in self.below_top().components() {
            at.push(part);
            if at.is_symlink() && !at.canonicalize().is_ok_and(|target| target.starts_with(&top)) {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    /// Returns the path in a tree; `None` if a link on it leads out of the tree.
    pub fn inside(&self, tree: &Path) -> io::Result<Option<PathBuf>> {
        self.up_to_the_way_out(tree).map(|(path, leads_out)| (!leads_out).then_some(path))
    }

    /// Removes the file or link with this path from a tree. If the path leads out of the tree, removes only the link
    /// that does, because the files beyond it are not Scruple's.
    pub fn remove_file(&self, tree: &Path) -> io::Result<()> {
        let (path, _) = self.up_to_the_way_out(tree)?;
        match path.is_symlink() || path.is_file() {
            true => fs::remove_file(path),
            false => Ok(()),
        }
    }
}

impl FromStr for TreePath {
    type Err = String;

    fn from_str(text: &str) -> Result<TreePath, String> {
        let stays = |part: Component| matches!(part, Component::Normal(_) | Component::CurDir);
        match !text.is_empty() && Path::new(text).components().all(stays) {
            true => Ok(TreePath(text.to_owned())),
            false => Err(format!(
                "‘{text}’ is not a path below the top of the tree: write it relative to the top, without ‘..’"
            )),
        }
    }
}

impl TryFrom<String> for TreePath {
    type Error = String;

    fn try_from(text: String) -> Result<TreePath, String> {
        text.parse()
    }
}

impl From<TreePath> for String {
    fn from(path: TreePath) -> String {
        path.0
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// As the text: the keys of kept builds contain it.
impl fmt::Debug for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_out_of_the_tree() {
        for text in ["/etc/passwd", "..", "../other", "build/../../other", "", "/", "build/.."] {
            assert!(text.parse::<TreePath>().is_err(), "{text}");
        }
        for (text, below_top) in [("./build//app", "build/app"), ("app/", "app"), (".", ""), ("a..b", "a..b")]
        {
            assert_eq!(text.parse::<TreePath>().map(|path| path.below_top()), Ok(PathBuf::from(below_top)));
        }
        assert_eq!(format!("{:?}", ["app".parse::<TreePath>().expect("a path")]), r#"["app"]"#);
    }
    #[test]
    fn a_link_leads_nothing_out_of_the_tree() {
        use std::os::unix::fs::symlink;
        let place = tempfile::tempdir().expect("a folder");
        let [tree, other] = ["tree", "other"].map(|name| place.path().join(name));
        for folder in [&tree.join("real"), &other] {
            fs::create_dir_all(folder).expect("a folder");
            fs::write(folder.join("app"), "").expect("a file");
        }
        symlink(&other, tree.join("out")).expect("a link");
        symlink("real", tree.join("in")).expect("a link");
        let path = |text: &str| text.parse::<TreePath>().expect("a path");
        assert_eq!(path("out/app").inside(&tree).expect("readable"), None);
        assert_eq!(path("in/app").inside(&tree).expect("readable"), Some(tree.join("in/app")));
        for text in ["out/app", "in/app", "none/app", "real"] {
            path(text).remove_file(&tree).expect("done");
        }
        assert!(other.join("app").exists() && !tree.join("out").is_symlink());
        assert!(!tree.join("real/app").exists() && tree.join("in").is_symlink());
    }
}
