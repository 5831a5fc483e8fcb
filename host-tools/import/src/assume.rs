//! Values that a trace does not state: asked for in one place, so that each is reported and none is made up in silence.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;

use super::imported::ImportOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Assumption;

/// Collects the assumptions of one import and hands out what `--assume` gave.
#[derive(Debug)]
pub struct Assumptions<'a> {
    given: &'a [(String, String)],
    asked: BTreeSet<String>,
    made: Vec<Assumption>,
}

impl<'a> Assumptions<'a> {
    /// Starts a collection.
    pub fn new(options: &'a ImportOptions) -> Self {
        Self {
            given: &options.assume,
            asked: BTreeSet::new(),
            made: Vec::new(),
        }
    }

    /// Returns the user's value for `key`, if any.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] where it does not read as a `T`.
    pub fn given<T: FromStr + Display>(&mut self, key: &str, applies_to: &str) -> Result<Option<T>> {
        self.asked.insert(key.to_string());
        let Some((_, text)) = self.given.iter().find(|(k, _)| k == key) else {
            return Ok(None);
        };
        let value: T = text.parse().map_err(|_| {
            Error::new(
                ErrorKind::Usage,
                format!("--assume {key}={text}: not a value of this kind"),
            )
            .at(applies_to)
            .expected(match std::any::type_name::<T>() {
                "usize" => "a whole number",
                "f32" | "f64" => "a number",
                _ => "text",
            })
        })?;
        self.record(key, &value, applies_to, "given");
        Ok(Some(value))
    }

    /// Returns the user's value for `key`, or the documented default with its reason. Recorded either way.
    ///
    /// # Errors
    /// As [`Assumptions::given`].
    pub fn or_default<T: FromStr + Display>(
        &mut self,
        key: &str,
        default: T,
        applies_to: &str,
        reason: &str,
    ) -> Result<T> {
        if let Some(value) = self.given(key, applies_to)? {
            return Ok(value);
        }
        self.record(key, &default, applies_to, reason);
        Ok(default)
    }

    /// One of `candidates`, each with its spelling in `--assume KEY=VALUE`: the only one there is, or the one that the user chose.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] where there is none; [`ErrorKind::Ambiguous`], naming the alternatives, where there are several and
    /// the user chose none; [`ErrorKind::Usage`] where the choice is not among them.
    pub fn choose<T: Clone>(&mut self, key: &str, candidates: &[(String, T)], applies_to: &str) -> Result<T> {
        let spellings = || {
            candidates
                .iter()
                .map(|(s, _)| s.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        if let Some(text) = self.given::<String>(key, applies_to)? {
            return candidates
                .iter()
                .find(|(spelling, _)| *spelling == text)
                .map(|(_, value)| value.clone())
                .ok_or_else(|| {
                    Error::new(
                        ErrorKind::Usage,
                        format!("--assume {key}={text} does not fit the trace"),
                    )
                    .at(applies_to)
                    .expected(format!("one of {}", spellings()))
                });
        }
        match candidates {
            [] => Err(Error::input(format!("nothing explains the {key}")).at(applies_to)),
            [(_, only)] => Ok(only.clone()),
            [(first, _), ..] => Err(Error::new(
                ErrorKind::Ambiguous,
                format!("more than one {key} fits: {}", spellings()),
            )
            .at(applies_to)
            .help(format!("choose with --assume '{key}={first}' or another of these"))),
        }
    }

    /// Reports a value that was derived or repaired rather than stated. That alone does not let the user give another.
    pub fn record(&mut self, key: &str, value: impl Display, applies_to: &str, reason: &str) {
        self.made.push(Assumption {
            key: key.to_string(),
            value: value.to_string(),
            applies_to: applies_to.to_string(),
            reason: reason.to_string(),
        });
    }

    /// The assumptions made, in order.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`] where the user gave a key that the import never needed, or one twice.
    pub fn finish(self) -> Result<Vec<Assumption>> {
        let mut keys = BTreeSet::new();
        if let Some((key, value)) = self.given.iter().find(|(key, _)| !keys.insert(key)) {
            return Err(Error::new(
                ErrorKind::Usage,
                format!("--assume {key}={value}: `{key}` is given twice"),
            ));
        }
        if let Some((key, value)) = self.given.iter().find(|(key, _)| !self.asked.contains(key)) {
            let asked = self.asked.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(Error::new(
                ErrorKind::Usage,
                format!("--assume {key}={value}: this trace needs no such value"),
            )
            .expected(match asked.as_str() {
                "" => "no assumption at all".to_string(),
                _ => format!("one of {asked}"),
            }));
        }
        Ok(self.made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(assume: &[(&str, &str)]) -> ImportOptions {
        ImportOptions {
            assume: assume.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
            ..ImportOptions::default()
        }
    }

    #[test]
    fn what_is_given_is_used_or_refused() {
        let given = options(&[("batch.traced", "4")]);
        let mut derived = Assumptions::new(&given);
        derived.record("batch.traced", 8, "the network", "derived");
        let error = derived.finish().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains("batch.traced=4"), "{error}");
        let twice = options(&[("classes", "4"), ("classes", "5")]);
        let mut asked = Assumptions::new(&twice);
        asked.given::<usize>("classes", "all").unwrap();
        assert!(asked.finish().unwrap_err().to_string().contains("twice"));
        let word = options(&[("classes", "many")]);
        let error = Assumptions::new(&word).given::<usize>("classes", "all").unwrap_err();
        assert!(error.to_string().contains("a whole number"), "{error}");
    }

    #[test]
    fn a_default_is_recorded_and_overridden() {
        let plain = options(&[]);
        let mut made = Assumptions::new(&plain);
        assert_eq!(made.or_default("lrn.beta", 0.75, "lrn1", "usual").unwrap(), 0.75);
        assert_eq!(made.finish().unwrap()[0].reason, "usual");

        let given = options(&[("lrn.beta", "0.5")]);
        let mut made = Assumptions::new(&given);
        assert_eq!(made.or_default("lrn.beta", 0.75, "lrn1", "usual").unwrap(), 0.5);
        assert_eq!(made.finish().unwrap()[0].reason, "given");
    }

    #[test]
    fn a_key_that_nobody_needs_is_refused() {
        let given = options(&[("lrn.beat", "0.5")]);
        let mut made = Assumptions::new(&given);
        made.or_default("lrn.beta", 0.75, "lrn1", "usual").unwrap();
        let error = made.finish().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.to_string().contains("lrn.beta"), "{error}");
    }

    #[test]
    fn several_candidates_ask() {
        let candidates = [("3x3".to_string(), 3), ("2x2".to_string(), 2)];
        let plain = options(&[]);
        let error = Assumptions::new(&plain)
            .choose("pool1.kernel", &candidates, "pool1")
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Ambiguous);
        assert!(error.to_string().contains("pool1.kernel=3x3"), "{error}");
        let given = options(&[("pool1.kernel", "2x2")]);
        assert_eq!(
            Assumptions::new(&given)
                .choose("pool1.kernel", &candidates, "pool1")
                .unwrap(),
            2
        );
    }
}
