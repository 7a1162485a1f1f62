//! Reads cost-centre profiles (`.prof`), as text (`-p`, `-P`) or JSON (`-pj`): a call tree with time and bytes.

use serde::Deserialize;
use std::collections::HashMap;

/// A cost centre at one position in the call tree.
#[derive(Clone, Debug, PartialEq)]
pub struct CostCentreNode {
    /// The name of the cost centre.
    pub name: String,
    /// The module of the cost centre.
    pub module: String,
    /// The source location.
    pub place: String,
    /// How often the cost centre was entered.
    pub entries: u64,
    /// Ticks of the profiler's clock in the cost centre, without callees; `None` for a text without `-P`, which has
    /// only shares.
    pub ticks: Option<u64>,
    /// Bytes allocated in the cost centre, without callees; `None` for a text without `-P`.
    pub bytes: Option<u64>,
    /// The shares of time and of bytes without callees, in percent, if the text contains them.
    pub shares: Option<(f64, f64)>,
    /// The index of the node that called this one; `None` for a root.
    pub parent: Option<usize>,
}

/// A profile: the tree, parents before their children.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostCentreProfile {
    /// The number of ticks of the whole run.
    pub ticks: u64,
    /// Bytes allocated by the whole run, without the profiler's own.
    pub bytes: u64,
    /// The nodes, parents before their children.
    pub nodes: Vec<CostCentreNode>,
}

impl CostCentreProfile {
    /// The label of a node: `module.name`.
    pub fn label(&self, node: usize) -> String {
        format!("{}.{}", self.nodes[node].module, self.nodes[node].name)
    }

    /// The stacks in the input format of flame graphs: names from the outermost on, joined by `;`, with the `cost` of
    /// the innermost one.
    pub fn folded(&self, cost: impl Fn(&CostCentreNode) -> Option<u64>) -> Vec<(String, u64)> {
        let mut paths: Vec<String> = Vec::with_capacity(self.nodes.len());
        let mut folded = Vec::new();
        for (i, node) in self.nodes.iter().enumerate() {
            let label = self.label(i).replace(';', ":");
            let path = match node.parent {
                Some(parent) => format!("{};{label}", paths[parent]),
                None => label,
            };
            if let Some(cost) = cost(node).filter(|cost| *cost > 0) {
                folded.push((path.clone(), cost));
            }
            paths.push(path);
        }
        folded
    }
}

/// Reads a profile in either format.
pub fn read(text: &str) -> Result<CostCentreProfile, String> {
    if text.trim_start().starts_with('{') { json(text) } else { plain(text) }
}

#[derive(Deserialize)]
struct ProfileHeader {
    total_ticks: u64,
    total_alloc: u64,
    cost_centres: Vec<CentreEntry>,
}

#[derive(Deserialize)]
struct CentreEntry {
    id: u64,
    label: String,
    module: String,
    src_loc: String,
}

/// Reads the JSON format. The tree may be deeper than JSON parsers allow, with two levels for each call, so it is
/// scanned by hand; only the part before it is parsed.
fn json(text: &str) -> Result<CostCentreProfile, String> {
    let not_understood = |why: String| format!("cannot parse the cost-centre profile: {why}");
    let (head, tree) =
        text.split_once("\"profile\":").ok_or_else(|| not_understood("it has no ‘profile’".to_owned()))?;
    let head = format!("{}}}", head.trim_end().trim_end_matches(','));
    let head: ProfileHeader =
        serde_json::from_str(&head).map_err(|error| not_understood(error.to_string()))?;
    let centres: HashMap<u64, &CentreEntry> =
        head.cost_centres.iter().map(|centre| (centre.id, centre)).collect();
    let mut profile =
        CostCentreProfile { ticks: head.total_ticks, bytes: head.total_alloc, nodes: Vec::new() };
    let mut open: Vec<usize> = Vec::new();
    let mut rest = tree;
    while let Some(at) = rest.find(['{', '}']) {
        let closing = rest[at..].starts_with('}');
        rest = &rest[at + 1..];
        if closing {
            if open.pop().is_none() || open.is_empty() {
                break;
            }
            continue;
        }
        let own = &rest[..rest.find(['{', '}', '[']).unwrap_or(rest.len())];
        let value = |key: &str| {
            let after = own[own.find(&format!("\"{key}\":"))? + key.len() + 3..].trim_start();
            after[..after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len())].parse::<u64>().ok()
        };
        let id = value("id").ok_or_else(|| not_understood("a node without an ‘id’".to_owned()))?;
        let word = |pick: fn(&CentreEntry) -> &String| {
            centres.get(&id).map_or_else(|| "?".to_owned(), |c| pick(c).clone())
        };
        profile.nodes.push(CostCentreNode {
            name: word(|centre| &centre.label),
            module: word(|centre| &centre.module),
            place: word(|centre| &centre.src_loc),
            entries: value("entries").unwrap_or(0),
            ticks: value("ticks"),
            bytes: value("alloc"),
            shares: None,
            parent: open.last().copied(),
        });
        open.push(profile.nodes.len() - 1);
    }
    Ok(profile)
}

fn plain(text: &str) -> Result<CostCentreProfile, String> {
    let after = |label: &str| {
        let rest = &text[text.find(label)? + label.len()..];
        let digits = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
        let end = digits.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(digits.len());
        digits[..end].replace(',', "").parse::<u64>().ok()
    };
    let ticks = after("secs").unwrap_or(0);
    let bytes = after("total alloc").ok_or("the cost-centre profile has no line ‘total alloc’")?;
    let mut profile = CostCentreProfile { ticks, bytes, nodes: Vec::new() };
    let mut ancestors: Vec<(usize, usize)> = Vec::new();
    let tree = text
        .lines()
        .skip_while(|line| !(line.starts_with("COST CENTRE") && line.contains("entries")))
        .skip(1)
        .filter(|line| !line.trim().is_empty());
    for line in tree {
        let depth = line.len() - line.trim_start().len();
        let node =
            node(line).ok_or_else(|| format!("cannot parse a line of the profile: ‘{}’", line.trim()))?;
        ancestors.retain(|(above, _)| *above < depth);
        let parent = ancestors.last().map(|(_, index)| *index);
        ancestors.push((depth, profile.nodes.len()));
        profile.nodes.push(CostCentreNode { parent, ..node });
    }
    Ok(profile)
}

/// Parses a line such as `main Main Alloc.hs:(11,1)-(24,13) 250 1 0.0 0.0 0.0 0.0 [ticks bytes]`. The source location
/// may contain blanks, so the numbers are counted from the end.
fn node(line: &str) -> Option<CostCentreNode> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_share =
        |at: usize| words.get(at).is_some_and(|word| word.contains('.') && word.parse::<f64>().is_ok());
    let n = words.len();
    let exact = n >= 11 && !is_share(n - 1) && !is_share(n - 2) && is_share(n - 3);
    let end = if exact { n - 2 } else { n };
    if end < 9 || !(end - 4..end).all(is_share) {
        return None;
    }
    Some(CostCentreNode {
        name: words[0].to_owned(),
        module: words[1].to_owned(),
        place: words[2..end - 6].join(" "),
        entries: words[end - 5].parse().ok()?,
        ticks: if exact { words[n - 2].parse().ok() } else { None },
        bytes: if exact { words[n - 1].parse().ok() } else { None },
        shares: Some((words[end - 4].parse().ok()?, words[end - 3].parse().ok()?)),
        parent: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("../../../tests/data/runtimes/ghc/prof-P.trimmed.txt");
    const JSON: &str = include_str!("../../../tests/data/runtimes/ghc/prof-pj.json");

    #[test]
    fn the_text_is_a_tree() {
        let profile = read(TEXT).expect("a profile");
        assert_eq!((profile.ticks, profile.bytes, profile.nodes.len()), (33, 240_849_560, 9));
        let caf = profile.nodes.iter().position(|node| node.module == "GHC.Conc.Signal").expect("there");
        assert_eq!((profile.nodes[caf].parent, profile.nodes[caf].bytes), (Some(0), Some(640)));
        assert_eq!(profile.nodes[2].parent, Some(1));
        assert_eq!(profile.nodes[8].shares, Some((100.0, 100.0)));
        assert_eq!(profile.nodes[8].place, "Alloc.hs:(11,1)-(24,13)");
        let folded = profile.folded(|node| node.bytes);
        assert_eq!(folded.last(), Some(&("MAIN.MAIN;Main.main".to_owned(), 240_810_472)));
        let total: u64 = folded.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(total, 240_849_560);
    }

    #[test]
    fn json_is_the_same_tree() {
        let profile = read(JSON).expect("a profile");
        assert_eq!((profile.ticks, profile.bytes), (247, 240_851_688));
        let total: u64 = profile.folded(|node| node.bytes).iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(total, 240_851_688);
        assert!(profile.nodes.iter().enumerate().skip(1).all(|(i, node)| node.parent.is_some_and(|p| p < i)));
    }

    #[test]
    fn a_text_that_is_not_a_profile_is_an_error() {
        assert!(read("{}").is_err());
        assert!(read("hello").is_err());
    }
}
