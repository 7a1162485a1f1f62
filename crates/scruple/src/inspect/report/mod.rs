//! The reports of the commands that examine one program.

pub mod calls;
pub mod leak;
pub mod leak_sites;
pub mod memory;
pub mod pauses;
pub mod profile;
pub mod sites;
pub mod sites_json;
pub mod sites_page;
