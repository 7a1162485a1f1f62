//! Flame graphs: boxes above each other, each as wide as its cost. This module computes the places of boxes, and draws
//! a graph as a file of its own; `chart/flame.rs` draws the placed boxes on a page.

use super::svg::{colour, cut, picture};
use maud::html;
use scruple_core::harmless_text::plain_lines;
use scruple_core::unit::share;
use scruple_stats::sorting;

/// A box of a flame graph: a node of the call tree.
pub struct FlameBox {
    /// The label of the box.
    pub label: String,
    /// The group of the box. All boxes of a group have one colour.
    pub group: String,
    /// The cost of the node without its callees.
    pub own: f64,
    /// The index of the caller's box, which is before this one in the list.
    pub parent: Option<usize>,
}

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const ROW: f64 = 17.0;
const TOP: f64 = 34.0;
/// The smallest width of a box that is drawn, in pixels. Narrower boxes are invisible, and numerous.
const LEAST: f64 = 0.3;

/// Where the boxes of a graph are.
pub struct FlameLayout {
    /// The boxes that are wide enough to be drawn, callers before what they call.
    pub boxes: Vec<PlacedBox>,
    /// The total cost of each box, including everything on top of it.
    pub whole: Vec<f64>,
    /// The cost of all boxes together.
    pub all: f64,
}

/// The place of a box.
pub struct PlacedBox {
    /// The index of the box.
    pub index: usize,
    /// The left end, as a share of the width of the graph.
    pub from: f64,
    /// The width, as a share of the width of the graph.
    pub wide: f64,
    /// The number of boxes below.
    pub level: usize,
}

/// Places the boxes whose share of the whole cost is at least `least`.
pub fn layout(boxes: &[FlameBox], least: f64) -> FlameLayout {
    let whole = totals(boxes);
    let mut level = vec![0_usize; boxes.len()];
    for (index, frame) in boxes.iter().enumerate() {
        level[index] = frame.parent.map_or(0, |parent| level[parent] + 1);
    }
    let all: f64 = boxes.iter().zip(&whole).filter(|(f, _)| f.parent.is_none()).map(|(_, whole)| whole).sum();
    // The first child starts at the left end of its parent. The space to the right of the children is the parent's own
    // cost.
    let mut next: Vec<f64> = vec![0.0; boxes.len()];
    let (mut root, mut placed) = (0.0, Vec::new());
    for index in by_size(boxes, &whole) {
        let wide = if all > 0.0 { whole[index] / all } else { 0.0 };
        let cursor = match boxes[index].parent {
            Some(parent) => &mut next[parent],
            None => &mut root,
        };
        let from = *cursor;
        *cursor += wide;
        next[index] = from;
        if wide >= least {
            placed.push(PlacedBox { index, from, wide, level: level[index] });
        }
    }
    FlameLayout { boxes: placed, whole, all }
}

/// Draws the graph; `written` formats a cost. Callees are above their callers, so that the program itself is at the
/// bottom.
pub fn svg(title: &str, boxes: &[FlameBox], written: impl Fn(f64) -> String) -> String {
    const ROOM: f64 = WIDTH - 2.0 * MARGIN;
    let FlameLayout { boxes: placed, whole, all } = layout(boxes, LEAST / ROOM);
    let deepest = placed.iter().map(|placed| placed.level).max().unwrap_or(0);
    let height = TOP + ROW * (deepest + 1) as f64 + MARGIN;
    let body = html! {
        @for PlacedBox { index, from, wide, level } in placed {
            @let (x, width) = (MARGIN + from * ROOM, wide * ROOM);
            @let y = height - MARGIN - ROW * (level + 1) as f64;
            @let one = &boxes[index];
            @let label = plain_lines(&one.label);
            @let name = cut(&label, width - 6.0);
            g {
                title {
                    (label) ": " (written(whole[index])) " (" (share(whole[index] / all)) "), itself " (written(one.own))
                }
                rect class="part" x=(format!("{x:.2}")) y=(y) width=(format!("{width:.2}")) height=(ROW - 1.0)
                    fill=(colour(&one.group)) {}
                @if !name.is_empty() {
                    text x=(format!("{:.2}", x + 3.0)) y=(y + 12.0) { (name) }
                }
            }
            "\n"
        }
    };
    picture(WIDTH as usize, height as usize, title, &body)
}

/// Returns the total cost of each box, including everything on top of it.
pub fn totals(boxes: &[FlameBox]) -> Vec<f64> {
    let mut whole: Vec<f64> = boxes.iter().map(|one| one.own).collect();
    for (index, frame) in boxes.iter().enumerate().rev() {
        if let Some(parent) = frame.parent {
            whole[parent] += whole[index];
        }
    }
    whole
}

/// Returns the indices of the boxes such that parents precede their children and larger siblings precede smaller ones.
fn by_size(boxes: &[FlameBox], whole: &[f64]) -> Vec<usize> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); boxes.len()];
    let mut open = Vec::new();
    for (index, frame) in boxes.iter().enumerate() {
        match frame.parent {
            Some(parent) => children[parent].push(index),
            None => open.push(index),
        }
    }
    let smallest_first = |list: &mut Vec<usize>| {
        sorting::by(list, |a, b| {
            whole[*a].total_cmp(&whole[*b]).then_with(|| boxes[*b].label.cmp(&boxes[*a].label))
        });
    };
    smallest_first(&mut open);
    let mut order = Vec::with_capacity(boxes.len());
    while let Some(index) = open.pop() {
        order.push(index);
        smallest_first(&mut children[index]);
        open.append(&mut children[index]);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(label: &str, own: f64, parent: Option<usize>) -> FlameBox {
        FlameBox { label: label.to_owned(), group: label.to_owned(), own, parent }
    }

    #[test]
    fn boxes_are_as_wide_as_what_they_and_their_callees_cost() {
        let frames = [frame("main", 1.0, None), frame("small", 1.0, Some(0)), frame("large<>", 8.0, Some(0))];
        assert_eq!(totals(&frames), [10.0, 1.0, 8.0]);
        let picture = svg("title", &frames, |cost| format!("{cost} B"));
        assert!(picture.contains("<title>main: 10 B (100 %), itself 1 B</title>"), "{picture}");
        assert!(
            picture.contains("x=\"10.00\" y=\"34\" width=\"944.00\""),
            "the largest comes first: {picture}"
        );
        assert!(picture.contains("x=\"954.00\" y=\"34\" width=\"118.00\""), "{picture}");
        assert!(picture.contains(">large&lt;&gt;</text>") && picture.ends_with("</svg>\n"), "{picture}");
    }

    #[test]
    fn a_graph_of_nothing_is_a_graph() {
        assert!(svg("empty", &[], |cost| cost.to_string()).ends_with("</svg>\n"));
        assert!(svg("idle", &[frame("main", 0.0, None)], |cost| cost.to_string()).ends_with("</svg>\n"));
    }

    #[test]
    fn a_deep_tree_does_not_overflow() {
        let deep: Vec<FlameBox> = (0..20_000).map(|i| frame("f", 1.0, (i as usize).checked_sub(1))).collect();
        assert_eq!(totals(&deep)[0], 20_000.0);
        assert!(svg("deep", &deep, |cost| cost.to_string()).len() > 1000);
    }
}
