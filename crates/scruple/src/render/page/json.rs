//! A page as JSON: everything that its charts and tables show, for other programs.

use super::Page;
use crate::render::json::document;
use serde::Serialize;

#[derive(Serialize)]
struct PageDocument<'a> {
    page: &'a Page,
}

/// Writes the page as JSON.
pub(crate) fn text(page: &Page) -> String {
    document(&PageDocument { page })
}
