//! Checks that the nodes of a farm are machines of one class.

use crate::fault::Fault;
use std::path::PathBuf;

/// The machine that did a unit.
pub struct UnitMachine {
    /// The name of the node.
    pub node: String,
    /// The machine class of the node.
    pub class: String,
    /// The path of the unit's result.
    pub result: PathBuf,
}

/// Returns an error if a unit ran on a machine of another class than earlier readings; `before` is that class, with one
/// of its nodes. Without earlier readings, the class of most units is the right one. The results of the others are
/// removed, so that the same command has these units done again.
pub fn check_classes(units: &[UnitMachine], before: Option<(&str, &str)>) -> Result<(), Fault> {
    let alike = |class: &str| units.iter().filter(|unit| unit.class == class).count();
    // Of classes with equally many units, the class of the first unit is the right one.
    let most = units.iter().rev().max_by_key(|unit| alike(&unit.class));
    let Some((first, class)) = before.or(most.map(|unit| (&*unit.node, &*unit.class))) else { return Ok(()) };
    let odd: Vec<&UnitMachine> = units.iter().filter(|unit| unit.class != class).collect();
    let Some(one) = odd.first() else { return Ok(()) };
    let mut results = Vec::new();
    for unit in &odd {
        std::fs::remove_file(&unit.result).map_err(|error| Fault::unwritable(&unit.result, error))?;
        results.push(format!("‘{}’", unit.result.display()));
    }
    Err(Fault::usage(format!(
        "‘{}’ is a machine of the class ‘{}’, and ‘{first}’ of the class ‘{class}’: name nodes of one class with constraint in \
         [farm], or allow several classes with mixed = true. The same command measures again what \
         other classes have measured; these results were removed: {}",
        one.node,
        one.class,
        results.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_of_most_units_or_of_earlier_readings_decides_and_results_of_others_are_removed_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let units = || -> Vec<UnitMachine> {
            let of = |(index, class): (usize, &&str)| {
                let result = folder.path().join(index.to_string());
                std::fs::write(&result, "{}").expect("a file");
                UnitMachine { node: format!("n{index}"), class: (*class).to_owned(), result }
            };
            ["old", "new", "new"].iter().enumerate().map(of).collect()
        };
        let left =
            || (0..3).filter(|index| folder.path().join(index.to_string()).exists()).collect::<Vec<_>>();
        let message = check_classes(&units(), None).expect_err("two classes").to_string();
        assert!(
            message.contains("‘n0’ is a machine of the class ‘old’, and ‘n1’ of the class ‘new’"),
            "{message}"
        );
        assert!(message.contains(&folder.path().join("0").display().to_string()), "{message}");
        assert_eq!(left(), [1, 2]);
        assert!(check_classes(&units(), Some(("n9", "old"))).is_err());
        assert_eq!(left(), [0]);
        assert!(check_classes(&units()[1..], None).is_ok() && check_classes(&[], None).is_ok());
    }
}
