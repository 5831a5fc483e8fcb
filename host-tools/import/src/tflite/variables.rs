//! The variables of a model.

use std::collections::HashMap;

use crate::graph::TensorId;

/// The variables of a model, by container and shared name.
#[derive(Default)]
pub(super) struct Variables {
    pub(super) by_name: HashMap<(String, String), usize>,
    pub(super) all: Vec<Variable>,
}

/// A variable.
pub(super) struct Variable {
    pub(super) name: String,
    /// Its state tensor, once something reads or assigns it.
    pub(super) tensor: Option<TensorId>,
    /// Value that the initialising subgraph assigns.
    pub(super) value: Option<Vec<u8>>,
}

impl Variables {
    /// The variable of this name, a new one where there is none yet.
    pub(super) fn of(&mut self, container: String, name: String) -> usize {
        let next = self.all.len();
        let label = if name.is_empty() {
            format!("variable#{next}")
        } else {
            name.clone()
        };
        let index = *self.by_name.entry((container, name)).or_insert(next);
        if index == next {
            self.all.push(Variable {
                name: label,
                tensor: None,
                value: None,
            });
        }
        index
    }
}
