//! `cargo xtask bench`: measures the models of the benchmarks on the boards again, and writes `tests/results` and the tables of the
//! documents.

use std::path::PathBuf;

use arenite::KernelId;
use arenite_host::board::{BOARDS, Board};
use arenite_xtask::{choices, cliffs, code_bytes, most, peer, results, stacks, tables, tiers};

use super::{Result, root};

/// Measures the models of these names, all where there are none.
pub(super) fn run(models: &[String]) -> Result<()> {
    let (tests, results) = (root().join("tests/models"), root().join("tests/results"));
    let mut note = |line: &str| eprintln!("{line}");
    results::update(&tests, shared().as_deref(), &results, models, &mut note)?;
    if models.is_empty() && shared().is_some() {
        tiers::record(&results, "bench", tiers::Passed::today())?;
    }
    fill()
}

/// Counts the models that the crate microflow is tried on, in both.
pub(super) fn peers() -> Result<()> {
    let shared = shared().ok_or("there is no shared data to take the models from")?;
    let mut peers = Vec::new();
    for model in peer::MODELS {
        let peer = peer::compare(&shared.join(format!("data/models/{model}.tflite")))?;
        match &peer.microflow {
            Ok(figures) => eprintln!(
                "{model}: {} instructions, {} by {}",
                peer.instructions,
                figures.instructions,
                peer::VERSION
            ),
            Err(reason) => eprintln!(
                "{model}: {} instructions, {}: {reason}",
                peer.instructions,
                peer::VERSION
            ),
        }
        peers.push(peer);
    }
    peer::write(&root().join("tests/results/microflow.json"), &peers)?;
    fill()
}

/// Looks for steps above what their kind may take.
pub(super) fn cliffs(names: &[String]) -> Result<()> {
    let (tests, results) = (root().join("tests/models"), root().join("tests/results"));
    let found = cliffs::find(&tests, shared().as_deref(), &results, names, &mut |line| {
        eprintln!("{line}")
    })?;
    for cliff in &found.above {
        println!(
            "{:>9} above {:>9}: {} on {}, step {}, {}, {} of work",
            cliff.excess(),
            cliff.limit,
            cliff.model,
            cliff.board,
            cliff.step,
            cliff.kernel,
            cliff.work
        );
    }
    for larger in &found.larger {
        println!(
            "{} for {}: {} bytes, more than the {} of its .tflite",
            larger.model, larger.target, larger.bytes, larger.tflite
        );
    }
    println!("{} of {} steps are above their limit", found.above.len(), found.steps);
    if names.is_empty() && shared().is_some() {
        cliffs::write(&results, &found)?;
        return fill();
    }
    Ok(())
}

/// Makes the table of stacks of these boards, all where there are none.
pub(super) fn stacks(names: &[String]) -> Result<()> {
    let path = root().join("host-tools/board/src/worst/stacks.json");
    let mut boards = boards(names)?;
    // Calls of what several cores get are not known before they run.
    boards.retain(|board| board.cores() == 1);
    stacks::update(&path, &boards, &mut |line| eprintln!("{line}"))
}

/// Makes the table of bytes of code of these boards, all that are measured where there are none.
pub(super) fn code_bytes(names: &[String]) -> Result<()> {
    let path = root().join("host-tools/board/src/worst/code_bytes.json");
    let mut boards = boards(names)?;
    boards.retain(|board| code_bytes::is_measured(board));
    code_bytes::update(&path, &boards, &mut |line| eprintln!("{line}"))
}

/// Makes the table of most instructions of these boards and kernels, all where there are none.
pub(super) fn most(names: &[String]) -> Result<()> {
    let path = root().join("host-tools/board/src/worst/instructions.json");
    let (kernels, names): (Vec<_>, Vec<_>) = names
        .iter()
        .partition(|name| KernelId::ALL.iter().any(|kernel| kernel.name() == **name));
    let wanted = |kernel: &KernelId| kernels.iter().any(|name| *name == kernel.name());
    let kernels: Vec<KernelId> = KernelId::ALL.iter().copied().filter(wanted).collect();
    let mut boards = boards(&names.into_iter().cloned().collect::<Vec<_>>())?;
    // Builds that are the same share their rows.
    boards.retain(|board| board.counts_as().name == board.name);
    most::update(&path, &boards, &kernels, &mut |line| eprintln!("{line}"))
}

/// Makes the table of cycles of these boards and kernels, all where there are none.
pub(super) fn rates(names: &[String]) -> Result<()> {
    let path = root().join("host-tools/board/src/worst/cycles.json");
    let (kernels, names): (Vec<_>, Vec<_>) = names
        .iter()
        .partition(|name| KernelId::ALL.iter().any(|kernel| kernel.name() == **name));
    let wanted = |kernel: &KernelId| kernels.iter().any(|name| *name == kernel.name());
    let kernels: Vec<KernelId> = KernelId::ALL.iter().copied().filter(wanted).collect();
    let names: Vec<String> = names.into_iter().cloned().collect();
    let mut boards = boards(&names)?;
    boards.retain(|board| most::rates::BOARDS.contains(&board.name));
    most::rates::update(&path, &boards, &kernels, &mut |line| eprintln!("{line}"))
}

/// Prints, for each board, the kernels that int8 models got and what they take beside the others that could have run.
pub(super) fn choices(names: &[String]) -> Result<()> {
    let tests = root().join("tests/models");
    let found = choices::find(&tests, shared().as_deref(), names, &mut |line| eprintln!("{line}"))?;
    println!("{}", choices::table(&found));
    for choice in found.iter().filter(|choice| choice.is_wrong()) {
        println!("{choice}");
    }
    Ok(())
}

fn boards(names: &[String]) -> Result<Vec<&'static Board>> {
    if let Some(name) = names.iter().find(|name| Board::find(name).is_none()) {
        return Err(format!("no board is called {name}").into());
    }
    let wanted = |board: &&Board| names.is_empty() || names.iter().any(|name| name == board.name);
    Ok(BOARDS.iter().filter(wanted).collect())
}

/// Prints the steps of the int8 models beside their reference, from the tracked results.
pub(super) fn layers(names: &[String]) -> Result<()> {
    println!("{}", tables::layers::layers(&root().join("tests/results"), names)?);
    Ok(())
}

/// Writes the tables of the documents from the tracked results.
pub(super) fn fill() -> Result<()> {
    for document in tables::DOCUMENTS {
        let path = root().join(document);
        let text = std::fs::read_to_string(&path)?;
        std::fs::write(&path, tables::fill(&text, &root().join("tests/results"))?)?;
        eprintln!("wrote the tables of {document}");
    }
    Ok(())
}

/// The folder of shared reference data: `ARENITE_SHARED`, or `../shared` beside the workspace.
fn shared() -> Option<PathBuf> {
    let folder = std::env::var_os("ARENITE_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    folder.is_dir().then_some(folder)
}
