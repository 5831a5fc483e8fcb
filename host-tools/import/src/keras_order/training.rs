//! The training half held against the forward half.

use std::collections::BTreeSet;

use super::roles;
use super::trace::{OPERATORS, Trace, at};
use crate::error::Result;

impl Trace<'_> {
    /// Every layer and operator that the training half names has its forward half.
    pub(super) fn check_training(&self) -> Result<()> {
        let forward: BTreeSet<&str> = self
            .forward
            .iter()
            .filter_map(|(name, _)| Some(name.split_once('/')?.0))
            .collect();
        for &(name, number) in &self.outside {
            let Some((layer, op)) = roles::trained(name, &self.network) else {
                continue;
            };
            let missing = match op {
                _ if !forward.contains(layer) => format!("layer `{layer}`, which has no operator in the forward half"),
                Some(op) if OPERATORS.contains(&op) && !self.lines.contains_key(format!("{layer}/{op}").as_str()) => {
                    format!("`{}/{layer}/{op}`, which is missing", self.network)
                }
                _ => continue,
            };
            return Err(at(number, format!("`{name}` trains {missing}"))
                .expected("the forward half of everything that is trained"));
        }
        Ok(())
    }

    /// No more gradients and updates than the network has trainable parameters.
    pub(super) fn check_updates(&self, parameters: usize) -> Result<()> {
        for (what, is_one) in [
            ("updates of parameters", roles::is_update as fn(&str) -> bool),
            ("averaged gradients", roles::is_averaged),
        ] {
            let mut lines = self
                .outside
                .iter()
                .filter(|(name, _)| is_one(name))
                .map(|(_, number)| *number);
            if let Some(number) = lines.nth(parameters) {
                let count = parameters + 1 + lines.count();
                return Err(at(
                    number,
                    format!("{count} {what}, but the network has {parameters} trainable parameters"),
                )
                .expected("the forward half of everything that is trained: layers are missing"));
            }
        }
        Ok(())
    }
}
