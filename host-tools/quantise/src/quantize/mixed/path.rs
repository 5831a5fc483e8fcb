//! From the coarsest network to the finest: one change after the other, each the one that takes most noise off for its bytes.
//!
//! Noise adds up over its sources, as they were measured one by one: the rounded weights of a layer, and a rounded activation, which is stored as coarsely as
//! the coarsest node that touches it. Which of the networks on the way is taken is decided by what they measure as a whole.

use super::level::Level;

/// Bytes of a step in a file, beside its constants.
const STEP: u64 = 72;

/// Facts about a node before it has a level.
#[derive(Debug, Clone, Default)]
pub(super) struct NodeFacts {
    /// Levels that it may compute with, from the coarsest.
    pub(super) levels: Vec<Level>,
    /// Noise of its weights in four bits, and in eight.
    pub(super) weights_noise: [f64; 2],
    /// Bytes of its constants by level.
    pub(super) bytes: [u64; Level::ALL.len()],
}

/// Activations that are rounded together.
#[derive(Debug, Clone, Default)]
pub(super) struct Unit {
    /// Noise in int8, in int16, in f32.
    pub(super) noise: [f64; 3],
    /// Its activations.
    pub(super) tensors: Vec<TensorFacts>,
}

/// An activation.
#[derive(Debug, Clone, Default)]
pub(super) struct TensorFacts {
    pub(super) elements: u64,
    /// Node that writes it; none: the caller does.
    pub(super) writer: Option<usize>,
    /// The nodes that write or read it.
    pub(super) touching: Vec<usize>,
    /// The caller gives or gets it, in int8.
    pub(super) port: bool,
}

/// The network as the path sees it.
#[derive(Debug, Clone, Default)]
pub(super) struct Terrain {
    pub(super) nodes: Vec<NodeFacts>,
    pub(super) units: Vec<Unit>,
    /// Of each node, the units that it touches.
    pub(super) touched: Vec<Vec<usize>>,
}

impl NodeFacts {
    fn noise(&self, level: Level) -> f64 {
        match level {
            Level::Int4 => self.weights_noise[0],
            Level::Int8 | Level::Int16 => self.weights_noise[1],
            Level::F32 => 0.0,
        }
    }

    /// Of the levels that are at least this fine the one with the fewest bytes of constants, and of those the coarsest.
    fn at_least(&self, fineness: usize) -> Option<Level> {
        let fine = self.levels.iter().filter(|level| level.fineness() >= fineness);
        fine.copied().min_by_key(|&level| (self.bytes[level as usize], level))
    }
}

impl TensorFacts {
    /// How finely it is stored where it is stored worst.
    fn coarsest(&self, levels: &[Level]) -> usize {
        let touching = self.touching.iter().map(|&node| levels[node].fineness());
        touching.min().filter(|_| !self.port).unwrap_or(0)
    }

    /// Bytes of it and of the conversions that it takes.
    fn bytes(&self, levels: &[Level]) -> u64 {
        let own = self.writer.map_or(1, |node| levels[node].element_bytes());
        let mut forms = [self.port, false, false];
        self.touching
            .iter()
            .for_each(|&node| forms[levels[node].fineness()] = true);
        let conversions = forms.iter().filter(|form| **form).count().saturating_sub(1);
        self.elements * own + STEP * conversions as u64
    }
}

impl Unit {
    fn noise(&self, levels: &[Level]) -> f64 {
        let coarsest = self.tensors.iter().map(|tensor| tensor.coarsest(levels)).min();
        coarsest.map_or(0.0, |fineness| self.noise[fineness])
    }

    fn bytes(&self, levels: &[Level]) -> u64 {
        self.tensors.iter().map(|tensor| tensor.bytes(levels)).sum()
    }
}

impl Terrain {
    /// Noise, and bytes of constants and activations, that nodes and the units which they touch have to do with.
    fn around(&self, nodes: &[usize], levels: &[Level]) -> (f64, u64) {
        let mut units: Vec<usize> = nodes.iter().flat_map(|&node| self.touched[node].clone()).collect();
        units.sort_unstable();
        units.dedup();
        let own = nodes.iter().map(|&node| {
            let level = levels[node];
            (self.nodes[node].noise(level), self.nodes[node].bytes[level as usize])
        });
        let units = units.iter().map(|&unit| {
            let unit = &self.units[unit];
            (unit.noise(levels), unit.bytes(levels))
        });
        own.chain(units)
            .fold((0.0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1))
    }

    /// Returns the possible changes: a node, or all nodes around a unit.
    fn changes(&self, levels: &[Level]) -> Vec<Vec<(usize, Level)>> {
        let mut all = Vec::new();
        for (node, facts) in self.nodes.iter().enumerate() {
            let finer = facts.levels.iter().filter(|level| **level > levels[node]);
            all.extend(finer.map(|&level| vec![(node, level)]));
        }
        for unit in &self.units {
            for fineness in 1..unit.noise.len() {
                let touching = unit.tensors.iter().flat_map(|tensor| &tensor.touching);
                let coarser = touching.filter(|&&node| levels[node].fineness() < fineness);
                let mut change: Vec<(usize, Level)> = coarser
                    .filter_map(|&node| Some((node, self.nodes[node].at_least(fineness)?)))
                    .collect();
                change.sort_unstable();
                change.dedup();
                if change.len() > 1 {
                    all.push(change);
                }
            }
        }
        all
    }

    /// The coarsest levels.
    fn coarsest(&self) -> Vec<Level> {
        let first = |facts: &NodeFacts| facts.levels.first().copied().unwrap_or(Level::F32);
        self.nodes.iter().map(first).collect()
    }

    /// The levels of all nodes at each point of the path; the last is the finest.
    pub(super) fn path(&self) -> Vec<Vec<Level>> {
        let mut levels = self.coarsest();
        let mut path = vec![levels.clone()];
        let finest: Vec<Level> = self
            .nodes
            .iter()
            .map(|facts| facts.levels.last().copied().unwrap_or(Level::F32))
            .collect();
        loop {
            let mut best: Option<(f64, Vec<Level>)> = None;
            for change in self.changes(&levels) {
                let nodes: Vec<usize> = change.iter().map(|(node, _)| *node).collect();
                let mut changed = levels.clone();
                change.iter().for_each(|&(node, level)| changed[node] = level);
                let (before, after) = (self.around(&nodes, &levels), self.around(&nodes, &changed));
                let (less, more) = (before.0 - after.0, after.1.saturating_sub(before.1).max(1));
                let worth = less / more as f64;
                if less > 0.0 && best.as_ref().is_none_or(|(most, _)| worth > *most) {
                    best = Some((worth, changed));
                }
            }
            let Some((_, next)) = best else { break };
            path.push(next.clone());
            levels = next;
        }
        if levels != finest {
            path.push(finest);
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two layers with an activation between them, an input before and an output behind.
    fn terrain() -> Terrain {
        let node = |noise: [f64; 2], weights: u64| NodeFacts {
            levels: Level::ALL.to_vec(),
            weights_noise: noise,
            bytes: [weights / 2, weights, weights, 4 * weights],
        };
        let unit = |noise: f64, writer: Option<usize>, touching: &[usize]| Unit {
            noise: [noise, noise / 65536.0, 0.0],
            tensors: vec![TensorFacts {
                elements: 10,
                writer,
                touching: touching.to_vec(),
                port: touching.len() == 1,
            }],
        };
        Terrain {
            nodes: vec![node([0.5, 0.01], 1000), node([0.2, 0.001], 20_000)],
            units: vec![
                unit(0.001, None, &[0]),
                unit(0.3, Some(0), &[0, 1]),
                unit(0.0, Some(1), &[1]),
            ],
            touched: vec![vec![0, 1], vec![1, 2]],
        }
    }

    #[test]
    fn the_dearest_noise_for_its_bytes_goes_first() {
        let path = terrain().path();
        assert_eq!(path[0], [Level::Int4, Level::Int4]);
        // 0.49 for 500 bytes, before 0.3 for twice as many of an activation and 10,000 of weights.
        assert_eq!(path[1], [Level::Int8, Level::Int4]);
        assert_eq!(path.last(), Some(&vec![Level::F32, Level::F32]));
        let together = path.iter().find(|levels| levels[0] > Level::Int8).expect("one");
        assert!(
            together[1] >= Level::Int16,
            "an activation is as fine as both around it: {path:?}"
        );
        for pair in path.windows(2) {
            assert!(pair[0].iter().zip(&pair[1]).all(|(a, b)| a <= b) && pair[0] != pair[1]);
        }
    }

    #[test]
    fn an_activation_is_as_coarse_as_its_coarsest_neighbour_and_a_port_is_int8() {
        let terrain = terrain();
        let unit = &terrain.units[1];
        assert_eq!(unit.noise(&[Level::F32, Level::Int4]), 0.3);
        assert_eq!(unit.noise(&[Level::F32, Level::Int16]), 0.3 / 65536.0);
        assert_eq!(terrain.units[0].noise(&[Level::F32, Level::F32]), 0.001);
        // One conversion between, and the writer's elements.
        assert_eq!(unit.bytes(&[Level::F32, Level::Int4]), 40 + STEP);
        assert_eq!(unit.bytes(&[Level::Int16, Level::Int16]), 20);
    }

    #[test]
    fn a_layer_that_stays_stays() {
        let mut terrain = terrain();
        terrain.nodes[0].levels = vec![Level::F32];
        let path = terrain.path();
        assert!(path.iter().all(|levels| levels[0] == Level::F32));
    }
}
