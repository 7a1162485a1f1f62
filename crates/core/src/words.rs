//! Closed sets of words: enums whose variants are spelled the same in JSON, in SQL and in messages.

/// Declares an enum with one word for each variant, its serialization, and the conversion from the word.
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$about])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            /// The word, the same everywhere.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// The variant of that word.
            pub fn from_word(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$variant),)+ _ => None }
            }
        }
    };
}

pub(crate) use words;
