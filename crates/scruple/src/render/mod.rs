//! How results look, whatever they are results of: tables, charts, pages, markup, files. Nothing here knows a run.

pub mod align;
pub mod block_characters;
pub mod chart;
pub mod colours;
pub mod csv;
pub mod export;
pub mod flame_graph;
pub mod json;
pub mod junit;
pub mod markup;
pub mod metric_words;
pub mod node_spread;
pub mod output;
pub mod page;
pub mod stacked_areas;
pub mod svg;
