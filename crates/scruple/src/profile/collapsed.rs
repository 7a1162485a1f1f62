//! Writes collapsed stacks: a line for each calling context with its functions, separated by semicolons, and its
//! instructions.

use super::CallProfile;
use std::fmt::Write as _;

pub(super) fn text(profile: &CallProfile) -> String {
    let mut out = String::new();
    for (place, node) in profile.nodes.iter().enumerate().filter(|(_, node)| node.own.instructions > 0) {
        let path = profile.path(place);
        // A semicolon in a name would be read as a separator.
        let names: Vec<String> =
            path.iter().map(|frame| profile.frames[*frame].name.replace(';', ",")).collect();
        let _ = writeln!(out, "{} {}", names.join(";"), node.own.instructions);
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_context_has_a_line() {
        let text = super::text(&crate::profile::tests::small());
        assert_eq!(
            text,
            "the program;main 100\nthe program;main;work, now 1000\nthe program;main;work, now;malloc 60\n"
        );
    }
}
