//! `scruple compare`: compares two stored runs, or two revisions of a repository.

pub mod args;
pub mod on_farm;
pub mod revisions;
pub mod stored;
pub mod verb;
pub mod weighing;
