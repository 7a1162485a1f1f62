//! Paths of files below the top of a version's tree.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

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
}
