//! `--color`: whether output is coloured.

use clap::ValueEnum;

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    #[value(alias = "color", alias = "full")]
    Always,
    /// Never.
    #[value(alias = "basic", alias = "nocolor", alias = "none")]
    Never,
}

impl Colour {
    /// Applies the choice to all output.
    pub fn choose(self) {
        let choice = match self {
            Colour::Auto => anstream::ColorChoice::Auto,
            Colour::Always => anstream::ColorChoice::Always,
            Colour::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}
