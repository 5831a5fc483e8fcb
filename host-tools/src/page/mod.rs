//! A model, or two side by side, as one HTML page that needs nothing else: whether it fits, steps, graph, arena over time, weights.
//!
//! The page holds the models as JSON; its script draws them.

mod data;
mod extra;
mod layers;
mod model;
mod names;
mod network;
mod timeline;

use maud::{DOCTYPE, PreEscaped, html};

use self::data::Shown;
pub use self::extra::{Accuracy, Extra};
use crate::model::ModelView;
use crate::report::Summary;
use crate::{Error, Result};

/// The page's only script, for a policy that names what may run.
pub const SCRIPT: &str = concat!(
    include_str!("assets/common.js"),
    include_str!("assets/summary.js"),
    include_str!("assets/steps.js"),
    include_str!("assets/graph.js"),
    include_str!("assets/arena.js"),
    include_str!("assets/weights.js"),
    include_str!("assets/compare.js"),
    include_str!("assets/main.js"),
);

const STYLE: &str = include_str!("assets/style.css");

/// A model to show: the file, its summary with the sizes of the whole file, and what is known beyond it.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The file.
    pub view: &'a ModelView<'a>,
    /// Its summary.
    pub summary: &'a Summary,
    /// Facts beyond the file.
    pub extra: &'a Extra,
}

/// The page of a model. `summary` has the sizes of the whole file.
///
/// # Errors
/// As [`ModelView::metadata`] and [`ModelView::steps`].
pub fn page(view: &ModelView<'_>, summary: &Summary, extra: &Extra) -> Result<String> {
    pages(&[Subject { view, summary, extra }])
}

/// The page of a model, or of several side by side.
///
/// # Errors
/// As [`page`].
pub fn pages(subjects: &[Subject<'_>]) -> Result<String> {
    let read = subjects.iter().map(|subject| data::read(subject.view));
    let read = read.collect::<Result<Vec<_>>>()?;
    let models = subjects
        .iter()
        .zip(&read)
        .map(|(subject, (metadata, steps))| Shown::of(subject.view, subject.summary, subject.extra, metadata, steps));
    let models = models.collect::<Result<Vec<_>>>()?;
    let json = serde_json::to_string(&models).map_err(|e| Error::internal(format!("the page's data: {e}")))?;
    // No name ends the element that it stands in: JSON has `<` in strings alone.
    let json = json.replace('<', "\\u003c");
    let title: Vec<&str> = subjects.iter().map(|subject| subject.summary.name.as_str()).collect();
    let traces = subjects.iter().filter_map(|subject| subject.extra.trace.as_ref());
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // The page loads nothing, whatever a model calls its tensors.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
                title { (title.join(", ")) " · Arenite" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                noscript { "The page draws the model with a script of its own, which this browser does not run: `arenite inspect MODEL` prints the same." }
                main id="page" {}
                @for trace in traces {
                    details class="trace" {
                        summary { "The trace as imported" }
                        pre tabindex="0" { (trace) }
                    }
                }
                aside id="detail" aria-live="polite" {}
                script type="application/json" id="data" { (PreEscaped(json)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    Ok(page.into_string())
}
