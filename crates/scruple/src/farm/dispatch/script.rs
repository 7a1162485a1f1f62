//! The line of shell that does a unit: the same environment on every node, and caches of each node's own.

use crate::fault::Fault;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What is the same for all units.
pub struct Script {
    program: PathBuf,
    scratch: PathBuf,
}

impl Script {
    /// Units are done by this program, or by this process's own; caches of nodes are below that folder.
    pub fn new(program: Option<PathBuf>, scratch: PathBuf) -> Result<Script, Fault> {
        let own = || {
            std::env::current_exe()
                .map_err(|error| Fault::internal(format!("cannot tell where this program is: {error}")))
        };
        Ok(Script { program: program.map_or_else(own, Ok)?, scratch })
    }

    /// Commands that do the unit whose file the variable `unit` names, on the node that `node` names. The folders of all
    /// nodes have equally long names, since what a program allocates may depend on them.
    pub fn text(&self, environment: &BTreeMap<String, String>) -> String {
        let quoted = |text: &str| shell_words::quote(text).into_owned();
        let kept = environment.iter().filter(|(name, _)| !name.starts_with("XDG_"));
        let pairs: Vec<String> = kept.map(|(name, value)| quoted(&format!("{name}={value}"))).collect();
        format!(
            "key=$(printf %s \"$node\" | cksum) && key=$(printf %010d \"${{key%% *}}\")\n\
             exec env -i {} XDG_CACHE_HOME={}/\"$key\" {} unit --node \"$node\" \"$unit\"\n",
            pairs.join(" "),
            quoted(&self.scratch.display().to_string()),
            quoted(&self.program.display().to_string()),
        )
    }
}
