//! The pictures of docs/report.md are made here: `ARENITE_BLESS=1` writes them.

use std::path::{Path, PathBuf};

use arenite_host::model::ModelFile;
use arenite_host::pack::{Options, pack};
use arenite_host::page::{Extra, page};
use arenite_tests::browser::Browser;
use arenite_tests::png_file::Picture;

use super::drawings::photograph;
use super::{opened, resize};

/// Pixels of a square that the eye takes as one where fonts differ.
const SQUARE: usize = 32;

fn documents() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures")
}

/// Mean brightness of each square.
fn squares(picture: &Picture) -> Vec<f64> {
    let [wide, high] = [picture.wide, picture.high].map(|extent| extent as usize);
    let across = wide.div_ceil(SQUARE);
    let mut sums = vec![(0.0, 0.0); across * high.div_ceil(SQUARE)];
    for (index, pixel) in picture.bytes.chunks_exact(3).enumerate() {
        let (sum, count) = &mut sums[index / wide / SQUARE * across + index % wide / SQUARE];
        *sum += pixel.iter().map(|&channel| f64::from(channel)).sum::<f64>() / 3.0;
        *count += 1.0;
    }
    sums.iter().map(|(sum, count)| sum / count).collect()
}

/// The share of squares that are lighter or darker; all, where the pictures have other sizes.
fn unlike(a: &Picture, b: &Picture) -> f64 {
    if [a.wide, a.high] != [b.wide, b.high] {
        return 1.0;
    }
    let (a, b) = (squares(a), squares(b));
    a.iter().zip(&b).filter(|(a, b)| (*a - *b).abs() > 24.0).count() as f64 / a.len() as f64
}

/// A picture of the page from the top of one part, as the documents have it. A reader sees the page of today.
fn compared(browser: &mut Browser, name: &str, part: &str, height: f64) -> Picture {
    let place = browser.value(&format!(
        "(() => {{ const r = document.querySelector({part:?}).getBoundingClientRect(); 
           return [Math.round(r.y + scrollY), document.documentElement.clientWidth]; }})()"
    ));
    let [top, width] = [0, 1].map(|at| place[at].as_f64().expect("a number"));
    let found = photograph(browser, [0.0, top, width, height]);
    let path = documents().join(format!("{name}.png"));
    if std::env::var_os("ARENITE_BLESS").is_some() {
        std::fs::create_dir_all(documents()).expect("a folder");
        found.write(&path);
    }
    let share = unlike(&found, &Picture::read(&path));
    assert!(
        share < 0.02,
        "{:.1} % of {name} are other than in docs/pictures: ARENITE_BLESS=1",
        100.0 * share
    );
    found
}

#[test]
fn the_documents_show_the_page_of_today() {
    let folder = tempfile::tempdir().expect("a folder");
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/pytorch");
    let mut options = Options::new(models.join("inception.trace.json"), folder.path().join("m.bin"));
    options.target = arenite::Target::CortexM4;
    let packed = pack(&options, &mut |_, _, _| {}).expect("it packs");
    let file = ModelFile::open(&options.output).expect("written");
    let text = page(&file.view().expect("intact"), &packed.summary, &Extra::default()).expect("a page");
    let path = folder.path().join("page.html");
    std::fs::write(&path, text).expect("written");
    let Some(mut browser) = opened("the documents' pictures", folder.path(), &path) else {
        return;
    };
    // Bars go with the next layout.
    resize(&mut browser, [1000, 900], "light");
    resize(&mut browser, [1200, 900], "light");
    let light = compared(&mut browser, "report", "#summary", 620.0);
    let graph = compared(&mut browser, "report-graph", "#graph", 720.0);
    compared(&mut browser, "report-arena", "#arena", 640.0);
    resize(&mut browser, [1200, 900], "dark");
    let dark = compared(&mut browser, "report-dark", "#steps", 620.0);
    resize(&mut browser, [400, 900], "dark");
    let narrow = compared(&mut browser, "report-narrow", "#summary", 900.0);
    // Another part, theme or width is another picture.
    assert!(unlike(&light, &dark) > 0.5 && unlike(&light, &graph) > 0.02 && unlike(&light, &narrow) > 0.5);
}
