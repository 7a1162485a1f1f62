//! The shell script that does a unit, with the same environment on every node and a separate cache for each node.

use crate::fault::Fault;
use scruple_stats::sorting::SortedMap;
use std::path::PathBuf;

/// The parts of the script that are the same for all units.
pub struct NodeScript {
    program: PathBuf,
    scratch: PathBuf,
}

impl NodeScript {
    /// Creates the script. Units are done by this program, or by the program of this process if none is given. The
    /// caches of the nodes are below `scratch`.
    pub fn new(program: Option<PathBuf>, scratch: PathBuf) -> Result<NodeScript, Fault> {
        let own = || {
            std::env::current_exe()
                .map_err(|error| Fault::internal(format!("cannot determine where this program is: {error}")))
        };
        Ok(NodeScript { program: program.map_or_else(own, Ok)?, scratch })
    }

    /// Returns the commands that do a unit. The variable `unit` names its file, and `node` names the node. The folders
    /// of all nodes have names of the same length, because the allocations of a program may depend on the length.
    pub fn text(&self, environment: &SortedMap<String, String>) -> String {
        self.doing(environment, "\"$@\"")
    }

    /// Returns the words that do the part of a unit that is on the node of its servers. The first argument of the words
    /// is the unit's file. `node` is the shell word that expands to the name of the node.
    pub fn words_beside(&self, environment: &SortedMap<String, String>, node: &str) -> [String; 4] {
        let text = format!("node={node}\nunit=$1\n{}", self.doing(environment, "--serve"));
        ["sh", "-c", &text, "sh"].map(str::to_owned)
    }

    /// Returns the commands that do a unit with these words.
    fn doing(&self, environment: &SortedMap<String, String>, more: &str) -> String {
        let quoted = |text: &str| shell_words::quote(text).into_owned();
        let kept = environment.iter().filter(|(name, _)| !name.starts_with("XDG_"));
        let pairs: Vec<String> = kept.map(|(name, value)| quoted(&format!("{name}={value}"))).collect();
        format!(
            "key=$(printf %s \"$node\" | cksum) && key=$(printf %010d \"${{key%% *}}\")\n\
             exec env -i {} XDG_CACHE_HOME={}/\"$key\" {} unit --node \"$node\" {more} \"$unit\"\n",
            pairs.join(" "),
            quoted(&self.scratch.display().to_string()),
            quoted(&self.program.display().to_string()),
        )
    }
}
