//! The pictures of the page, as SVG.

use maud::{Markup, html};

use super::layers::draw;
use super::model::PageStep;
use super::timeline::{Block, heights};
use crate::report::grouped;

/// A region of the arena over the steps of a run.
pub(super) struct Region<'a> {
    pub(super) index: u8,
    pub(super) name: &'a str,
    pub(super) bytes: u64,
}

const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 360.0;
/// Room for the labels of bytes.
const LEFT: f64 = 70.0;

/// Tensors as boxes: steps across, bytes upwards; steps that reach the region's end are marked.
pub(super) fn arena(region: &Region<'_>, blocks: &[Block], tensors: &[String], steps: &[PageStep]) -> Markup {
    let step_width = (WIDTH - LEFT) / steps.len().max(1) as f64;
    let scale = HEIGHT / region.bytes.max(1) as f64;
    let x = |step: usize| LEFT + step as f64 * step_width;
    let y = |byte: f64| HEIGHT - byte * scale;
    let tops = heights(blocks, region.index, steps.len());
    let highest = tops.iter().copied().max().unwrap_or(0);
    let name = |block: &Block| match block.owner {
        Some(owner) => tensors.get(owner).map_or("", String::as_str).to_string(),
        None => "scratch".to_string(),
    };
    let hover = |block: &Block| {
        let [from, to] = block.bytes;
        let [first, last] = block.steps;
        format!(
            "{}: {} bytes at {}, steps {first} to {last}",
            name(block),
            grouped(u64::from(to - from)),
            grouped(u64::from(from))
        )
    };
    html! {
        h3 { (region.name) ": " (grouped(region.bytes)) " bytes" }
        div class="frame" {
            svg class="arena" viewBox=(format!("0 -12 {WIDTH} {}", HEIGHT + 34.0)) width="100%" role="img" aria-label="Arena over time" {
                @for quarter in 0..=4u64 {
                    @let byte = region.bytes as f64 * quarter as f64 / 4.0;
                    path class="grid" d=(format!("M{LEFT} {:.1}H{WIDTH}", y(byte))) {}
                    text x="4" y=(format!("{:.1}", y(byte) + 4.0)) { (grouped(region.bytes * quarter / 4)) }
                }
                @for block in blocks.iter().filter(|block| block.region == region.index) {
                    @let [from, to] = block.bytes.map(f64::from);
                    @let [first, last] = block.steps;
                    rect class=(if block.owner.is_some() { "box" } else { "box scratch" }) data-step=(first)
                        x=(format!("{:.2}", x(first))) y=(format!("{:.2}", y(to)))
                        width=(format!("{:.2}", step_width * (last + 1 - first) as f64)) height=(format!("{:.2}", (to - from) * scale))
                        fill=[block.owner.map(colour)] fill-opacity="0.75" {
                        title { (hover(block)) }
                    }
                }
                @for (step, _) in tops.iter().enumerate().filter(|(_, top)| **top == highest && highest > 0) {
                    rect class="peak" x=(format!("{:.2}", x(step))) y="-10" width=(format!("{step_width:.2}")) height="7" {}
                }
                text x=(LEFT) y=(HEIGHT + 18.0) { "step 0" }
                text x=(WIDTH) y=(HEIGHT + 18.0) text-anchor="end" { "step " (steps.len().saturating_sub(1)) }
            }
        }
    }
}

/// A hue for each tensor, far from its neighbours'.
fn colour(owner: usize) -> String {
    format!("hsl({} 62% 55%)", (owner * 137) % 360)
}

const NODE: [f32; 2] = [176.0, 40.0];
const GAP: [f32; 2] = [20.0, 26.0];
const SHOWN: usize = 24;

/// The graph: inputs, steps and outputs in this order, edges between their numbers.
pub(super) fn graph(inputs: &[String], steps: &[PageStep], outputs: &[String], edges: &[[usize; 2]]) -> Markup {
    let count = inputs.len() + steps.len() + outputs.len();
    let drawing = draw(count, edges);
    let at = |[layer, column]: [f32; 2]| {
        [
            column * (NODE[0] + GAP[0]) + GAP[0],
            layer * (NODE[1] + GAP[1]) + GAP[1],
        ]
    };
    let [layers, columns] = drawing.size;
    let (width, height) = (
        columns as f32 * (NODE[0] + GAP[0]) + GAP[0],
        layers as f32 * (NODE[1] + GAP[1]) + GAP[1],
    );
    let path = |points: &[[f32; 2]]| {
        let mut path = String::new();
        for (index, &point) in points.iter().enumerate() {
            let [x, y] = at(point);
            let x = x + NODE[0] / 2.0;
            let last = index + 1 == points.len();
            match index {
                0 => path += &format!("M{x:.0} {:.0}", y + NODE[1]),
                _ => {
                    // Down the middle of the gap, then on through the row.
                    let [before, above] = at(points[index - 1]);
                    let (from, bottom) = (before + NODE[0] / 2.0, above + NODE[1]);
                    let middle = (bottom + y) / 2.0;
                    path += &format!("C{from:.0} {middle:.0} {x:.0} {middle:.0} {x:.0} {y:.0}");
                    if !last {
                        path += &format!("V{:.0}", y + NODE[1]);
                    }
                }
            }
        }
        path
    };
    let node = |index: usize, step: Option<usize>, title: &str, name: &str| {
        let [x, y] = at(drawing.nodes[index]);
        html! {
            g class=(if step.is_some() { "node" } else { "port" }) data-step=[step] transform=(format!("translate({x:.0} {y:.0})")) {
                title { (name) }
                rect width=(NODE[0]) height=(NODE[1]) rx="5" {}
                text x="8" y="16" font-weight="600" { (title) }
                text x="8" y="32" { (short(name)) }
            }
        }
    };
    html! {
        div class="frame" {
            svg class="graph" width=(format!("{width:.0}")) height=(format!("{height:.0}")) role="img" aria-label="Graph" {
                @for edge in &drawing.edges { path class="edge" d=(path(edge)) {} }
                @for (index, name) in inputs.iter().enumerate() { (node(index, None, "input", name)) }
                @for (index, step) in steps.iter().enumerate() { (node(inputs.len() + index, Some(index), &step.op, &step.name)) }
                @for (index, name) in outputs.iter().enumerate() { (node(inputs.len() + steps.len() + index, None, "output", name)) }
            }
        }
    }
}

/// The end of a long name: there it differs from its neighbours.
fn short(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    match letters.len() {
        n if n <= SHOWN => name.to_string(),
        n => format!("…{}", letters[n - SHOWN + 1..].iter().collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_their_ends() {
        assert_eq!(short("conv"), "conv");
        let long = short(&format!("{}/Relu;ü", "x".repeat(80)));
        assert!(
            long.starts_with('…') && long.ends_with("/Relu;ü") && long.chars().count() == SHOWN,
            "{long}"
        );
    }
}
