//! Area charts, with bands stacked on each other over time.

use super::svg::{colour, cut, picture};
use maud::{Markup, html};
use scruple_core::harmless_text::plain_lines;

/// A band of an area chart.
pub struct Band {
    /// The label of the band.
    pub name: String,
    /// The heights of the band, one for each moment.
    pub heights: Vec<f64>,
}

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 720.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 420.0;
const ROW: f64 = 18.0;

/// Draws the bands, the first one at the bottom. `moment` and `height` format the numbers of the two axes.
pub fn svg(
    title: &str,
    moments: &[f64],
    bands: &[Band],
    moment: impl Fn(f64) -> String,
    height: impl Fn(f64) -> String,
) -> String {
    let all = HEIGHT.max(TOP + ROW * bands.len() as f64 + 10.0);
    let sum = |at: usize| bands.iter().map(|band| band.heights[at]).sum::<f64>();
    let most = (0..moments.len()).map(sum).fold(0.0, f64::max);
    let (first, last) = (moments.first().copied().unwrap_or(0.0), moments.last().copied().unwrap_or(0.0));
    let x = |at: f64| LEFT + if last > first { (at - first) / (last - first) * (RIGHT - LEFT) } else { 0.0 };
    let y = |value: f64| BOTTOM - if most > 0.0 { value / most * (BOTTOM - TOP) } else { 0.0 };
    let mut floor = vec![0.0; moments.len()];
    let mut shapes: Vec<Markup> = Vec::new();
    for (index, band) in bands.iter().enumerate() {
        let top: Vec<f64> = floor.iter().zip(&band.heights).map(|(below, height)| below + height).collect();
        let forth = moments.iter().zip(&top);
        let back = moments.iter().zip(&floor).rev();
        let points = forth.chain(back).map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value)));
        let points: Vec<String> = points.collect();
        let at_most = band.heights.iter().copied().fold(0.0, f64::max);
        let beside = TOP + ROW * (bands.len() - 1 - index) as f64;
        let (name, fill) = (plain_lines(&band.name), colour(&band.name));
        shapes.push(html! {
            g {
                title { (name) ": at most " (height(at_most)) }
                polygon class="part" points=(points.join(" ")) fill=(fill) {}
                rect class="part" x=(RIGHT + 16.0) y=(beside) width="12" height="12" fill=(fill) {}
                text x=(RIGHT + 34.0) y=(beside + 10.0) { (cut(&name, WIDTH - RIGHT - 40.0)) }
            }
            "\n"
        });
        floor = top;
    }
    let body = html! {
        @for value in steps(most) {
            @let at = format!("{:.1}", y(value));
            line class="line" x1=(LEFT) x2=(RIGHT) y1=(at) y2=(at) {}
            text x=(LEFT - 6.0) y=(format!("{:.1}", y(value) + 4.0)) text-anchor="end" { (height(value)) } "\n"
        }
        @for value in steps(last - first).into_iter().map(|step| first + step) {
            text x=(format!("{:.1}", x(value))) y=(BOTTOM + 16.0) text-anchor="middle" { (moment(value)) } "\n"
        }
        @for shape in &shapes { (shape) }
    };
    picture(WIDTH as usize, all as usize, title, &body)
}

/// Returns about five round numbers from zero to at most `most`.
fn steps(most: f64) -> Vec<f64> {
    if !(most > 0.0 && most.is_finite()) {
        return Vec::new();
    }
    let power = 10_f64.powf((most / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].iter().map(|digit| digit * power).find(|step| most / step <= 6.0);
    let step = step.unwrap_or(10.0 * power);
    (0..=(most / step) as usize).map(|i| i as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_few() {
        assert_eq!(steps(9.0), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(steps(0.47).len(), 5);
        assert!(steps(0.0).is_empty() && steps(f64::NAN).is_empty());
    }

    #[test]
    fn bands_stand_on_each_other() {
        let band = |name: &str, heights: [f64; 2]| Band { name: name.to_owned(), heights: heights.to_vec() };
        let bands = [band("a&b", [10.0, 10.0]), band("c", [0.0, 10.0])];
        let picture = svg("heap", &[0.0, 1.0], &bands, |s| format!("{s} s"), |b| format!("{b} B"));
        assert!(picture.contains("points=\"80.0,230.0 720.0,230.0 720.0,420.0 80.0,420.0\""), "{picture}");
        assert!(picture.contains("points=\"80.0,230.0 720.0,40.0 720.0,230.0 80.0,230.0\""), "{picture}");
        assert!(picture.contains("<title>a&amp;b: at most 10 B</title>"), "{picture}");
        assert!(svg("none", &[], &[], |s| s.to_string(), |b| b.to_string()).ends_with("</svg>\n"));
    }
}
