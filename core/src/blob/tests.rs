//! Files with steps of training: whatever looks at steps looks at these too, and errors name them behind those of inference.

#![cfg(feature = "pack")]

extern crate std;
use std::vec::Vec;

use super::{Cpu, Header, Lengths, ListHead, Model, seal, write_port, write_step};
use crate::MODEL_ALIGN;
use crate::arena::Slot;
use crate::codes::{Code, NO_KERNEL};
use crate::error::{Lack, LoadError, RunError};
use crate::kernels::Backend;
use crate::kernels::table::{KernelId, Step};
use crate::ops::elementwise::UnaryF32;
use crate::ops::embedding::Embedding;
use crate::ops::fault::Fault;
use crate::ops::pointwise::UnaryOp;
use crate::ops::pool2d::PoolInt;
use crate::ops::window::Window2d;
use crate::session::Session;
use crate::tensor::DType;
use crate::{Port, Progress};

/// Bytes of the arena of all files here.
const ARENA: u32 = 256;

fn at(offset: u32) -> Slot {
    Slot { region: 0, offset }
}

/// So many squares.
fn squares(count: u32) -> Step {
    Step::UnaryF32(UnaryF32 {
        output: at(0),
        input: at(128),
        count,
        op: UnaryOp::Square,
    })
}

/// A row of a table of two; the index is the input of [`file`].
fn row() -> Step {
    Step::Embedding(Embedding {
        output: at(0),
        indices: at(64),
        table: at(128),
        element: 4,
        count: 1,
        rows: 2,
        width: 4,
    })
}

/// A maximum by a kernel of the backend `compact`.
fn pool() -> Step {
    Step::CompactMaxPoolS8(PoolInt {
        output: at(0),
        input: at(64),
        dtype: DType::I8,
        window: Window2d {
            batch: 1,
            input: [2, 2, 2],
            output: [1, 1, 2],
            kernel: [2, 2],
            stride: [1, 1],
            dilation: [1, 1],
            padding: [0, 0],
        },
        clamp: [-128, 127],
    })
}

/// Bytes at the alignment of models and arenas.
struct Aligned(Vec<u8>, usize);

impl Aligned {
    fn bytes(&self) -> &[u8] {
        &self.0[self.1..]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0[self.1..]
    }
}

fn aligned(bytes: &[u8]) -> Aligned {
    let mut memory = Vec::<u8>::with_capacity(bytes.len() + MODEL_ALIGN);
    let start = memory.as_ptr().align_offset(MODEL_ALIGN);
    memory.resize(start, 0);
    memory.extend(bytes);
    Aligned(memory, start)
}

/// A file with these steps of inference, and these of training. Both take an int32 that lies at `input`.
fn file(inference: &[Step], training: &[Step], input: u32) -> Aligned {
    let mut header = Header {
        inputs: 1,
        input_bytes: 4,
        step_count: inference.len() as u32,
        arena: [ARENA, 0, 0, 0],
        ..Header::default()
    };
    let mut encoded = |steps: &[Step]| {
        let mut bytes = Vec::new();
        for step in steps {
            write_step(step, &mut bytes, &mut header.kernels).expect("a step");
        }
        bytes
    };
    let [steps, training_steps] = [encoded(inference), encoded(training)];
    let ports = |offset: u32| {
        let mut port = Port {
            name: "index",
            slot: at(offset),
            dtype: DType::I32,
            shape: Default::default(),
            scale: 0.0,
            zero_point: 0,
        };
        port.shape.push(1).expect("an axis");
        let mut bytes = Vec::new();
        write_port(&port, &mut bytes).expect("a port");
        bytes
    };
    let (own, of_training) = (ports(64), ports(input));
    let head = ListHead {
        inputs: 1,
        ports: of_training.len() as u32,
        steps: training.len() as u32,
        input_bytes: 4,
        ..ListHead::default()
    };
    let list = [&head.to_bytes()[..], &of_training, &training_steps].concat();
    let lengths = Lengths {
        ports: own.len(),
        steps: steps.len(),
        training: list.len(),
        ..Lengths::default()
    };
    header.place(lengths).expect("a small file");
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    for section in [own, steps, list] {
        bytes.extend(section);
    }
    bytes.resize(header.total as usize, 0);
    seal(&mut bytes);
    aligned(&bytes)
}

/// The kernel that a code names in a file.
fn kernel_of(code: u32) -> Option<KernelId> {
    match Code::from_u32(code).kernel {
        NO_KERNEL => None,
        kernel => KernelId::from_u8(kernel),
    }
}

#[test]
fn a_budget_holds_for_a_run_of_training_too() {
    let file = file(&[squares(1)], &[squares(4), squares(16)], 64);
    let model = Model::load(file.bytes()).expect("it loads");
    let inference = model.cost().total();
    let costs: Vec<u64> = model
        .training()
        .expect("a list")
        .costs()
        .map(|cost| cost.total())
        .collect();
    let all: u64 = costs.iter().sum();
    let within = |budget| Model::load_within(file.bytes(), budget).map(|_| ());
    assert!(inference < costs[0]);
    // Each list is a run of its own: their sum need not be within.
    assert_eq!(within(all), Ok(()));
    let refused = |step, cost, budget| Err(LoadError::Cost { step, cost, budget });
    assert_eq!(within(all - 1), refused(2, all, all - 1));
    assert_eq!(within(inference), refused(1, costs[0], inference));
    assert_eq!(within(inference - 1), refused(0, inference, inference - 1));
}

#[test]
fn instructions_of_training_are_those_of_the_core_too() {
    let file = file(&[squares(1)], &[squares(1), pool()], 64);
    let lacking = Cpu::COMPILED.without(Backend::Compact);
    let lack = Lack::Kernel {
        step: 2,
        kernel: KernelId::CompactMaxPoolS8,
    };
    assert!(Model::load_on(file.bytes(), Cpu::COMPILED).is_ok());
    let error = Model::load_on(file.bytes(), lacking).map(|_| ());
    assert_eq!(error, Err(LoadError::Cpu { lack }));
}

#[test]
fn errors_of_a_load_count_training_behind_inference() {
    let wrong = file(&[squares(1), row()], &[squares(1), squares(ARENA)], 64);
    let error = Model::load(wrong.bytes()).expect_err("out of bounds");
    let fault = Fault::Bounds;
    assert_eq!(error, LoadError::Step { step: 3, fault });
    assert_eq!(kernel_of(error.code_in(wrong.bytes())), Some(KernelId::UnaryF32));
    let wrong = file(&[squares(1)], &[squares(1)], ARENA);
    assert_eq!(Model::load(wrong.bytes()).map(|_| ()), Err(LoadError::Port { port: 1 }));
}

#[test]
fn errors_of_a_run_count_as_those_of_a_load() {
    let file = file(&[squares(1), squares(2)], &[squares(1), row(), pool()], 64);
    let model = Model::load(file.bytes()).expect("it loads");
    let mut arena = aligned(&[0; ARENA as usize]);
    let mut session = Session::new(model, arena.bytes_mut(), &mut []).expect("memory");
    session.turn_to_training().expect("a list");
    session.set_input(0, &2_i32.to_le_bytes()).expect("an input");
    // The steps of a run are counted from its first one.
    assert_eq!(session.step(), Ok(Progress::Step { step: 0, steps: 3 }));
    let error = session.step().expect_err("no such row");
    let expected = RunError::OutOfRange {
        step: 3,
        index: 2,
        count: 2,
    };
    assert_eq!(error, expected);
    assert_eq!(kernel_of(error.code_in(file.bytes())), Some(KernelId::Embedding));
    for (step, kernel) in [
        (1, Some(KernelId::UnaryF32)),
        (2, Some(KernelId::UnaryF32)),
        (4, Some(KernelId::CompactMaxPoolS8)),
        (5, None),
    ] {
        assert_eq!(
            kernel_of(RunError::Corrupt { step }.code_in(file.bytes())),
            kernel,
            "{step}"
        );
    }
}
