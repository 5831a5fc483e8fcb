//! Bounds of a load and a run: closed forms of the file's length and of values that load has computed, held against files that are made to be slow.

use arenite::arena::Access;
use arenite::blob::Sections;
use arenite::ops::pool2d::PoolInt;
use arenite::ops::window::Window2d;
use arenite::testkit::{Workspace, packed};
use arenite::{DType, Fault, KernelId, LoadError, Model, Step};
use arenite_tests::blob::{Blob, SHARED_CHANNELS, aligned, at, shared_by};
use arenite_tests::kit::is_generated;
use arenite_xtask::most::generate::{Random, step};

/// The first step that load refuses to check, of a file with `steps` of them, of `kinds` in turn; `None` where it loads.
fn refused(steps: usize, kinds: usize) -> Option<u32> {
    let file = shared_by(steps, kinds);
    match Model::load(aligned(&file).bytes()) {
        Ok(_) => None,
        Err(LoadError::Step {
            step,
            fault: Fault::Shared,
        }) => Some(step),
        Err(error) => panic!("{error}"),
    }
}

/// Steps of a few kinds that share one block of records, as bands of convolutions do: load checks it once for each kind, however many steps there are.
#[test]
fn shared_constants_are_checked_once() {
    for kinds in [1, 2, 3, 8, 16] {
        assert_eq!(refused(20_000, kinds), None, "{kinds} kinds");
    }
}

/// A file of steps of which each wants the same block of records checked anew: load looks at 16 times the bytes of weights and steps again, and refuses the
/// step after.
#[test]
fn constants_shared_by_unlike_steps_are_checked_in_proportion_to_the_file() {
    let steps = 300;
    let mut file = aligned(&shared_by(steps, steps));
    let sections = Sections::open(file.bytes()).expect("sections");
    let steps_of_file = sections.steps().map(|record| record.expect("a step").1.len());
    let params: Vec<usize> = steps_of_file.collect();
    // A step is its kernel's number, a length below 128 and the parameters, of which four bytes that are passed count as one.
    let passed: Vec<usize> = params.iter().map(|len| len / 4 + 1).collect();
    let constants = 13 * usize::from(SHARED_CHANNELS);
    let mut left = 16 * (constants + params.iter().map(|len| len + 2).sum::<usize>());
    // Each looks at all steps before it, in vain, and then at the constants; the first at nothing again.
    let again = |step: &usize| passed[..*step].iter().sum::<usize>() + constants;
    let most = (1..steps)
        .take_while(|step| {
            let enough = left >= again(step);
            left = left.saturating_sub(again(step));
            enough
        })
        .count();
    assert!(most > 16 && most < 40, "{most}");
    assert_eq!(refused(steps, steps), Some(most as u32 + 1));
    assert_eq!(
        refused(20 * steps, 20 * steps).map(|step| step < 20 * steps as u32),
        Some(true)
    );
    assert_eq!(refused(16, 16), None);
}

/// A step of a file, alone in a file with the same constants.
fn alone(blob: &Blob, step: &(u8, Vec<u8>)) -> Result<(), Fault> {
    let file = Blob {
        steps: vec![step.clone()],
        ..blob.clone()
    };
    match Model::load(aligned(&file.file()).bytes()) {
        Ok(_) => Ok(()),
        Err(LoadError::Step { step: 0, fault }) => Err(fault),
        Err(error) => panic!("{error}"),
    }
}

/// Files of a kernel's step, as it is and with changed parameters, many times over: load refuses the first that it refuses alone, for the same reason, whatever
/// was checked before it.
#[test]
fn sharing_changes_no_verdict() {
    let mut workspace = Box::new(Workspace::new());
    let (mut loaded, mut refused, mut late) = (0, 0, 0);
    for (&kernel, seed) in KernelId::ALL
        .iter()
        .flat_map(|kernel| (0..30).map(move |seed| (kernel, seed)))
    {
        let mut params = [0; 256];
        let Some(step) = packed(kernel, seed, &mut params, &mut workspace) else {
            continue;
        };
        let mut random = Random::new(1 + u64::from(seed));
        let mut number = |below: usize| usize::from(u16::from_le_bytes([random.byte(), random.byte()])) % below;
        let mut weights = step.constants.to_vec();
        if seed % 3 == 0 && !weights.is_empty() {
            let at = number(weights.len());
            weights[at] ^= 1 << number(8);
        }
        let blob = Blob {
            arena: [2 * step.arena as u32, 0, 0, 0],
            weights,
            ..Blob::default()
        };
        let plain = (kernel as u8, step.params.to_vec());
        let mut kinds = vec![plain.clone(); 2];
        // Few changes are refused for the constants alone: a thousand are tried.
        let changed = std::iter::repeat_with(|| {
            let (id, mut params) = plain.clone();
            let at = number(params.len());
            params[at] = number(256) as u8;
            (id, params)
        });
        let (unfit, other): (Vec<_>, Vec<_>) = changed
            .take(if seed % 5 == 0 { 1_000 } else { 3 })
            .partition(|kind| alone(&blob, kind) == Err(Fault::Weights));
        kinds.extend(unfit.into_iter().chain(other).take(3));
        let verdicts: Vec<_> = kinds.iter().map(|kind| alone(&blob, kind)).collect();
        // Those that load come first, some of them more than once, and then, in every second file, all.
        let mut order: Vec<usize> = (0..20)
            .map(|_| number(5))
            .filter(|&kind| verdicts[kind].is_ok())
            .collect();
        if seed % 2 == 0 {
            order.extend([4, 3, 2, 1, 0]);
        }
        let file = Blob {
            steps: order.iter().map(|&kind| kinds[kind].clone()).collect(),
            ..blob
        };
        let first = order.iter().position(|&kind| verdicts[kind].is_err());
        let expected = match first {
            None => Ok(()),
            Some(step) => Err(LoadError::Step {
                step: step as u32,
                fault: verdicts[order[step]].expect_err("a refused step"),
            }),
        };
        let is = Model::load(aligned(&file.file()).bytes()).map(|_| ());
        assert_eq!(is, expected, "{} {seed}, {order:?}", kernel.name());
        if is.is_ok() {
            loaded += 1
        } else {
            refused += 1
        }
        let unfit_is_late = matches!(
            is,
            Err(LoadError::Step {
                step: 1..,
                fault: Fault::Weights
            })
        );
        late += u32::from(unfit_is_late && verdicts[0].is_ok());
    }
    println!("{loaded} loaded, {refused} refused, {late} of them for constants that others may trust");
    assert!(
        loaded > 300 && refused > 300 && late > 10,
        "{loaded}, {refused}, {late}"
    );
}

/// A step is refused before a run for work that it cannot do.
#[test]
fn a_run_is_bounded_by_what_load_within_allows() {
    let file = shared_by(3, 3);
    let mut file = aligned(&file);
    let model = Model::load(file.bytes()).expect("a file that loads");
    let costs: Vec<u64> = model.costs().map(|cost| cost.total()).collect();
    let sum: u64 = costs.iter().sum();
    assert!(costs.len() == 3 && costs[0] >= 2 * u64::from(SHARED_CHANNELS) && model.cost().total() == sum);
    assert!(Model::load_within(file.bytes(), sum).is_ok());
    let refused = |step, cost, budget| Err(LoadError::Cost { step, cost, budget });
    let within = |budget| Model::load_within(aligned(&shared_by(3, 3)).bytes(), budget).map(|_| ());
    assert_eq!(within(sum - 1), refused(2, sum, sum - 1));
    assert_eq!(within(costs[0]), refused(1, costs[0] + costs[1], costs[0]));
    assert_eq!(within(0), refused(0, costs[0], 0));
}

/// Steps of every kernel as the tables of instructions are made from: load and host state the same cost, and it is not below the elements that a step reads and
/// writes, nor below a product for each output of a convolution.
#[test]
fn no_cost_is_below_the_operands() {
    // Commands for an NPU are no steps that numbers make.
    for &kernel in KernelId::ALL.iter().filter(|&&kernel| is_generated(kernel)) {
        let mut random = Random::new(kernel as u64);
        let steps: Vec<_> = (0..60)
            .filter_map(|_| step(kernel, &mut random, 0, 0))
            .take(20)
            .collect();
        assert!(!steps.is_empty(), "{}", kernel.name());
        for (index, generated) in steps.iter().enumerate() {
            let (step, what) = (&generated.step, format!("{} {index}", kernel.name()));
            let blob = Blob {
                arena: [generated.bytes, 0, 0, 0],
                weights: generated.constants.clone(),
                ..Blob::default()
            };
            let file = blob.step(step).file();
            let mut file = aligned(&file);
            let model = Model::load(file.bytes()).unwrap_or_else(|error| panic!("{what}: {error}"));
            let cost = model.costs().next().expect("a step");
            assert_eq!(cost, step.cost(), "{what}");
            assert_eq!(cost.total(), cost.products + cost.reads + cost.writes, "{what}");
            let cost = step.work();
            let (mut written, mut read) = (0, 0);
            step.operands(&mut |operand| {
                let elements = u64::from(operand.bytes / operand.align.clamp(1, 8));
                match operand.access {
                    Access::Read => read += elements,
                    Access::Write | Access::Update => written += elements,
                    Access::Scratch => {}
                }
            });
            // Of a state by lines it is one.
            let by_lines = matches!(step, Step::WriteLine(_));
            assert!(cost.writes >= written || by_lines, "{what}: {cost:?}, writes {written}");
            // A window need not reach all of its input, nor indices all rows of a table.
            let by_index = matches!(step, Step::Embedding(_) | Step::EmbeddingW8(_) | Step::RotaryF32(_));
            let skips = step.clone().window_mut().is_some()
                || matches!(step, Step::CopyBytes(_) | Step::Gather(_) | Step::Resize(_))
                || by_index;
            assert!(cost.reads >= read || skips, "{what}: {cost:?}, reads {read}");
        }
    }
}

/// The largest window that load accepts over an image, as a pooling: no output reads more than the image.
#[test]
fn windows_cost_no_more_than_the_image() {
    let window = |kernel: u16, padding| Window2d {
        batch: 1,
        input: [40, 30, 2],
        output: [2, 2, 2],
        kernel: [kernel; 2],
        stride: [1, 1],
        dilation: [1, 1],
        padding: [padding; 2],
    };
    let pool = |window| PoolInt {
        output: at(0),
        input: at(4096),
        dtype: DType::I8,
        window,
        clamp: [-128, 127],
    };
    let cost = |kernel, padding| {
        let step = Step::MaxPoolInt(pool(window(kernel, padding)));
        step.check().map(|()| step.work().total())
    };
    // Products and twice as many reads, of the whole image at the least; eight outputs.
    let of = |products: u64| products + (2 * products).max(2400) + 8 + 8 * 8;
    assert_eq!(cost(1, 0), Ok(of(8)));
    // Windows of no more than two by two elements count once.
    assert_eq!(cost(3, 0), Ok(2 * of(8 * 9)));
    // The first and the second row of windows have 25 and 26 rows of the image.
    assert_eq!(cost(280, 255), Ok(2 * of(2 * 51 * 51)));
    assert_eq!(cost(u16::MAX, 0), Err(Fault::Shape));
    assert_eq!(cost(u16::MAX, 255), Err(Fault::Shape));
}
