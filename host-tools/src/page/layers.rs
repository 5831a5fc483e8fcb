//! Where the nodes of a drawn graph stand: in layers from top to bottom, edges downwards.
//!
//! The method of K. Sugiyama, S. Tagawa and M. Toda, "Methods for visual understanding of hierarchical system structures", 1981:
//! layers by longest path, long edges cut into pieces of one layer, neighbours ordered by the mean of what they hang on.

use std::collections::BTreeSet;

use serde::Serialize;

/// Longer edges are drawn straight: their pieces would be most of a large page.
const LONGEST: usize = 40;
/// How often the order within layers is made anew, down and up in turn.
const SWEEPS: usize = 6;

/// A drawn graph.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Drawing {
    /// Layer and column of each node; columns are halves where a layer is narrower than its neighbours.
    pub(super) nodes: Vec<[f32; 2]>,
    /// For each edge the points that it passes, `[layer, column]`.
    pub(super) edges: Vec<Vec<[f32; 2]>>,
    /// How many layers and columns there are.
    pub(super) size: [usize; 2],
}

/// Places `count` nodes; an edge goes from a node to one of a higher number.
pub(super) fn draw(count: usize, edges: &[[usize; 2]]) -> Drawing {
    let mut layer = vec![0usize; count];
    let mut sorted: Vec<[usize; 2]> = edges
        .iter()
        .copied()
        .filter(|[from, to]| from < to && *to < count)
        .collect();
    sorted.sort_by_key(|&[from, to]| (to, from));
    for &[from, to] in &sorted {
        layer[to] = layer[to].max(layer[from] + 1);
    }
    // A node that hangs on nothing else stands right above its reader.
    let fed: BTreeSet<usize> = sorted.iter().map(|&[_, to]| to).collect();
    for node in (0..count).filter(|node| !fed.contains(node)) {
        let next = sorted
            .iter()
            .filter(|&&[from, _]| from == node)
            .map(|&[_, to]| layer[to])
            .min();
        layer[node] = next.map_or(0, |next| next.saturating_sub(1));
    }
    // Points beyond the nodes stand for long edges.
    let mut links: Vec<[usize; 2]> = Vec::new();
    let mut passes: Vec<Vec<usize>> = Vec::new();
    for &[from, to] in &sorted {
        let mut pass = vec![from];
        if layer[to] - layer[from] <= LONGEST {
            for between in layer[from] + 1..layer[to] {
                pass.push(layer.len());
                layer.push(between);
            }
        }
        pass.push(to);
        links.extend(pass.windows(2).map(|pair| [pair[0], pair[1]]));
        passes.push(pass);
    }
    let column = columns(&layer, &links);
    let at = |point: usize| [layer[point] as f32, column[point]];
    let widest = column.iter().fold(0f32, |most, &column| most.max(column));
    Drawing {
        nodes: (0..count).map(at).collect(),
        edges: passes
            .iter()
            .map(|pass| pass.iter().map(|&point| at(point)).collect())
            .collect(),
        size: [
            layer.iter().max().map_or(0, |&most| most + 1),
            if count == 0 { 0 } else { widest.ceil() as usize + 1 },
        ],
    }
}

fn columns(layer: &[usize], links: &[[usize; 2]]) -> Vec<f32> {
    let layers = layer.iter().max().map_or(0, |&most| most + 1);
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); layers];
    for (point, &layer) in layer.iter().enumerate() {
        rows[layer].push(point);
    }
    let mut neighbours: [Vec<Vec<usize>>; 2] = [vec![Vec::new(); layer.len()], vec![Vec::new(); layer.len()]];
    for &[from, to] in links {
        neighbours[0][to].push(from);
        neighbours[1][from].push(to);
    }
    let widest = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut column = vec![0f32; layer.len()];
    let centre = |row: &[usize], column: &mut [f32]| {
        let start = (widest - row.len()) as f32 / 2.0;
        for (index, &point) in row.iter().enumerate() {
            column[point] = start + index as f32;
        }
    };
    for row in &rows {
        centre(row, &mut column);
    }
    for sweep in 0..SWEEPS {
        let neighbours = &neighbours[sweep % 2];
        let mut each = |row: &mut Vec<usize>| {
            let mean = |point: usize| {
                let known = &neighbours[point];
                match known.len() {
                    0 => column[point],
                    n => known.iter().map(|&other| column[other]).sum::<f32>() / n as f32,
                }
            };
            let mut keys: Vec<(f32, usize)> = row.iter().map(|&point| (mean(point), point)).collect();
            keys.sort_by(|a, b| a.0.total_cmp(&b.0));
            *row = keys.into_iter().map(|(_, point)| point).collect();
            centre(row, &mut column);
        };
        if sweep.is_multiple_of(2) {
            rows.iter_mut().for_each(&mut each);
        } else {
            rows.iter_mut().rev().for_each(&mut each);
        }
    }
    column
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_follow_the_longest_path_and_edges_pass_every_layer_between() {
        // A residual block: 0 to 1, 1 to 2, 2 to 4, 0 to 3 (a shortcut), 3 to 4; 5 feeds 4 alone.
        let drawing = draw(7, &[[0, 1], [1, 2], [2, 4], [0, 3], [3, 4], [5, 6], [4, 6]]);
        let layers: Vec<f32> = drawing.nodes.iter().map(|node| node[0]).collect();
        assert_eq!(layers, [0.0, 1.0, 2.0, 1.0, 3.0, 3.0, 4.0]);
        assert_eq!(drawing.size, [5, 2]);
        let shortcut = drawing
            .edges
            .iter()
            .find(|edge| edge[0] == drawing.nodes[3])
            .expect("drawn");
        assert_eq!(
            shortcut.iter().map(|point| point[0]).collect::<Vec<_>>(),
            [1.0, 2.0, 3.0]
        );
        for (a, one) in drawing.nodes.iter().enumerate() {
            assert!(drawing.nodes[..a].iter().all(|other| other != one), "two in one place");
        }
    }

    #[test]
    fn a_graph_without_nodes_or_with_edges_backwards_is_drawn() {
        assert_eq!(draw(0, &[]), Drawing::default());
        let drawing = draw(2, &[[1, 0], [0, 0], [0, 9]]);
        assert_eq!((drawing.edges.len(), drawing.size), (0, [1, 2]));
    }

    #[test]
    fn a_long_chain_with_an_edge_across_it_stays_small() {
        let mut edges: Vec<[usize; 2]> = (1..1500).map(|to| [to - 1, to]).collect();
        edges.push([0, 1499]);
        let drawing = draw(1500, &edges);
        assert_eq!(drawing.size, [1500, 1]);
        assert!(drawing.edges.iter().all(|edge| edge.len() == 2));
    }
}
