//! Which arms of a scan are compared: arms whose parameters are equal, except the one that distinguishes old from new.

use super::Pair;
use crate::run::Run;
use crate::subject::{Arm, Parameter, Role};
use std::collections::HashMap;

/// The pairs of a run in which several commands, or the values of one textual parameter, were weighed at several values
/// of other parameters: each arm is compared with the first one that has the same values. Empty for other runs.
pub(super) fn pairs(run: &Run) -> Vec<Pair<'_>> {
    let subjects: Vec<&Arm> = run.arms_of(Role::Subject).collect();
    if subjects.iter().any(|arm| arm.params.is_empty()) {
        return Vec::new();
    }
    let of_commands = grouped(&subjects, None);
    if of_commands.len() > 1 && of_commands.iter().all(|group| group.len() > 1) {
        return within(&of_commands);
    }
    let texts = subjects[..1].iter().flat_map(|arm| &arm.params);
    let text = texts.filter(|(_, value)| matches!(value, Parameter::Text(_))).map(|(name, _)| name).next();
    let Some(text) = text.filter(|_| of_commands.len() == subjects.len()) else { return Vec::new() };
    let of_values = grouped(&subjects, Some(text));
    match of_values.len() > 1 && of_values.iter().all(|group| group.len() > 1) {
        true => within(&of_values),
        false => Vec::new(),
    }
}

/// Groups arms with equal parameters, in the order of the run; the parameter `but` is ignored.
fn grouped<'a>(subjects: &[&'a Arm], but: Option<&String>) -> Vec<Vec<&'a Arm>> {
    let mut groups: Vec<Vec<&'a Arm>> = Vec::new();
    let mut places: HashMap<Vec<(&str, String)>, usize> = HashMap::new();
    for arm in subjects {
        let params = arm.params.iter().filter(|(name, _)| Some(*name) != but);
        let params = params.map(|(name, value)| (name.as_str(), format!("{value:?}"))).collect();
        let place = *places.entry(params).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.push(arm),
            None => groups.push(vec![arm]),
        }
    }
    groups
}

fn within<'a>(groups: &[Vec<&'a Arm>]) -> Vec<Pair<'a>> {
    let with_first = |group: &Vec<&'a Arm>| -> Vec<Pair<'a>> {
        group[1..].iter().map(|arm| Pair::of_one_run(group[0], arm)).collect()
    };
    groups.iter().flat_map(with_first).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::Subject;

    fn run(arms: &[&[(&str, &str)]]) -> Run {
        let arm = |(index, params): (usize, &&[(&str, &str)])| {
            let mut arm = Arm::new(index.to_string(), Subject::Command { argv: Vec::new() }, Role::Subject);
            arm.params =
                params.iter().map(|(name, value)| ((*name).to_owned(), Parameter::parse(value))).collect();
            arm
        };
        Run::of(arms.iter().enumerate().map(arm).collect())
    }

    fn names(run: &Run) -> Vec<String> {
        pairs(run).iter().map(|pair| format!("{}<{}", pair.arm.name, pair.reference.name)).collect()
    }

    #[test]
    fn old_and_new_are_compared_at_equal_sizes() {
        let scan = run(&[
            &[("bin", "old"), ("n", "1")],
            &[("bin", "new"), ("n", "1")],
            &[("bin", "old"), ("n", "2")],
            &[("bin", "new"), ("n", "2")],
        ]);
        assert_eq!(names(&scan), ["1<0", "3<2"]);
        let commands = run(&[&[("n", "1")], &[("n", "2")], &[("n", "1")], &[("n", "2")]]);
        assert_eq!(names(&commands), ["2<0", "3<1"]);
    }

    #[test]
    fn a_scan_of_one_parameter_has_no_old_and_new() {
        assert!(names(&run(&[&[("n", "1")], &[("n", "2")], &[("n", "3")]])).is_empty());
        assert!(names(&run(&[&[("how", "fast")], &[("how", "best")]])).is_empty());
        assert!(names(&run(&[&[], &[]])).is_empty());
    }
}
