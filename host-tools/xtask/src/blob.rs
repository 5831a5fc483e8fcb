//! Model files made and changed by hand, with a good checksum: for what no packer writes.

pub use arenite::blob::seal;
use arenite::blob::{Lengths, write_port, write_record};
use arenite::ops::conv2d::Conv2dS8;
use arenite::ops::window::Window2d;
use arenite::{DType, Header, KernelId, KernelSet, MAX_REGIONS, Port, Section, Slot, StateInit, Step};
use arenite_host::model::Aligned;

/// The parts of a model file. [`Blob::file`] lays them out and puts lengths, sums and the checksum right.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Blob {
    /// The target's number.
    pub target: u8,
    /// Bytes of each region.
    pub arena: [u32; MAX_REGIONS],
    /// The inputs.
    pub inputs: Vec<Tensor>,
    /// The outputs.
    pub outputs: Vec<Tensor>,
    /// Kernel numbers with their parameters.
    pub steps: Vec<(u8, Vec<u8>)>,
    /// The metadata section.
    pub meta: Vec<u8>,
    /// The encoded class labels.
    pub labels: Vec<u8>,
    /// The number of cores, and a byte for each step; empty for one core.
    pub cores: Vec<u8>,
    /// The weights.
    pub weights: Vec<u8>,
    /// The state's initial value.
    pub state: Vec<u8>,
}

/// An input or output.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// Where it lies.
    pub slot: Slot,
    /// Element type.
    pub dtype: DType,
    /// Extents, outermost first; at most eight.
    pub shape: Vec<u32>,
    /// Scale, 0 where it is not quantised.
    pub scale: f32,
    /// Zero point.
    pub zero_point: i32,
}

/// Byte `offset` of the first region.
pub fn at(offset: u32) -> Slot {
    Slot { region: 0, offset }
}

impl Tensor {
    /// An unquantised tensor.
    pub fn new(name: &str, slot: Slot, dtype: DType, shape: &[u32]) -> Self {
        Self {
            name: name.into(),
            slot,
            dtype,
            shape: shape.into(),
            scale: 0.0,
            zero_point: 0,
        }
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> u32 {
        self.shape.iter().product::<u32>() * self.dtype.bytes() as u32
    }

    fn port(&self) -> Port<'_> {
        let mut shape = Port {
            name: &self.name,
            slot: self.slot,
            dtype: self.dtype,
            shape: Default::default(),
            scale: self.scale,
            zero_point: self.zero_point,
        };
        for &extent in &self.shape {
            shape.shape.push(extent).expect("at most eight axes");
        }
        shape
    }
}

impl Blob {
    /// The parts of a file.
    ///
    /// # Panics
    /// Where they do not decode.
    pub fn of(file: &[u8]) -> Self {
        let header = Header::parse(file).expect("a header");
        let section = |at: Section| &file[at.offset as usize..][..at.len as usize];
        let state = match header.state_runs {
            0 => StateInit::Bytes(section(header.state_init)),
            runs => StateInit::Runs(&file[header.state_init.offset as usize..].as_chunks().0[..runs.into()]),
        };
        let mut rest = section(header.ports);
        let mut ports = Vec::new();
        while !rest.is_empty() {
            let (port, others): (Port<'_>, _) = postcard::take_from_bytes(rest).expect("a port");
            ports.push(Tensor {
                name: port.name.into(),
                slot: port.slot,
                dtype: port.dtype,
                shape: port.shape.to_vec(),
                scale: port.scale,
                zero_point: port.zero_point,
            });
            rest = others;
        }
        let mut rest = section(header.steps);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let ((kernel, params), others): ((u8, &[u8]), _) = postcard::take_from_bytes(rest).expect("a step");
            steps.push((kernel, params.to_vec()));
            rest = others;
        }
        Self {
            target: header.target,
            arena: header.arena,
            outputs: ports.split_off(usize::from(header.inputs)),
            inputs: ports,
            steps,
            meta: section(header.meta).to_vec(),
            labels: section(header.labels).to_vec(),
            cores: section(header.cores).to_vec(),
            weights: section(header.weights).to_vec(),
            state: state.bytes().collect(),
        }
    }

    /// Appends a step.
    #[must_use]
    pub fn step(mut self, step: &Step) -> Self {
        self.steps.push((step.kernel() as u8, encoded(step)));
        self
    }

    /// The steps, decoded.
    ///
    /// # Panics
    /// Where one does not decode.
    pub fn decoded(&self) -> Vec<Step> {
        let decode = |(kernel, params): &(u8, Vec<u8>)| {
            let kernel = KernelId::from_u8(*kernel).expect("a known kernel");
            Step::decode(kernel, params).expect("parameters")
        };
        self.steps.iter().map(decode).collect()
    }

    /// Puts another step in place of one.
    pub fn replace(&mut self, index: usize, step: &Step) {
        self.steps[index] = (step.kernel() as u8, encoded(step));
    }

    /// The file.
    pub fn file(&self) -> Vec<u8> {
        self.file_with(|_| {})
    }

    /// The file, with a change to its header before the checksum is taken.
    pub fn file_with(&self, change: impl FnOnce(&mut Header)) -> Vec<u8> {
        let (mut ports, mut steps) = (Vec::new(), Vec::new());
        for tensor in self.inputs.iter().chain(&self.outputs) {
            write_port(&tensor.port(), &mut ports).expect("a port");
        }
        for (kernel, params) in &self.steps {
            write_record(*kernel, params, &mut steps).expect("a record");
        }
        let mut header = Header {
            target: self.target,
            inputs: self.inputs.len() as u8,
            outputs: self.outputs.len() as u8,
            step_count: self.steps.len() as u32,
            arena: self.arena,
            input_bytes: self.inputs.iter().map(Tensor::bytes).sum(),
            output_bytes: self.outputs.iter().map(Tensor::bytes).sum(),
            kernels: self
                .steps
                .iter()
                .fold(KernelSet::EMPTY, |set, &(kernel, _)| set.with(kernel)),
            ..Header::default()
        };
        let mut runs = Vec::new();
        let state_runs = StateInit::runs_of(&self.state, &mut runs);
        let state = state_runs.map_or(&self.state, |_| &runs);
        let lengths = Lengths {
            ports: ports.len(),
            steps: steps.len(),
            meta: self.meta.len(),
            state_init: self.state.len(),
            state_runs: state_runs.unwrap_or(0),
            labels: self.labels.len(),
            cores: self.cores.len(),
            tokenizer: 0,
            training: 0,
            rolling: 0,
            weights: self.weights.len(),
        };
        header.place(lengths).expect("a small file");
        let mut file = [
            &vec![0; header.bytes()],
            &ports[..],
            &steps,
            &self.meta,
            &self.labels,
            &self.cores,
            state,
        ]
        .concat();
        file.resize(header.weights.offset as usize, 0);
        file.extend_from_slice(&self.weights);
        change(&mut header);
        let mut head = Vec::new();
        header.write(&mut head);
        file[..head.len()].copy_from_slice(&head);
        seal(&mut file);
        file
    }
}

/// Bytes at the alignment that a device gives a model.
pub fn aligned(bytes: &[u8]) -> Aligned {
    let mut memory = Aligned::new(bytes.len());
    memory.bytes().copy_from_slice(bytes);
    memory
}

fn encoded(step: &Step) -> Vec<u8> {
    let mut buffer = [0; 2048];
    step.encode(&mut buffer).expect("room for a step").to_vec()
}

/// Channels of a step of [`shared_by`], whose records load checks: 12 bytes each, and a byte of weights.
pub const SHARED_CHANNELS: u16 = 1_000;

/// A file of many steps that share all constants: of `kinds` in turn, at most 65,280, which differ in a parameter behind their places, and each at
/// another place than the one before it.
pub fn shared_by(steps: usize, kinds: usize) -> Vec<u8> {
    let channels = u32::from(SHARED_CHANNELS);
    let step = |index: usize| {
        let kind = index % kinds;
        let [zero_point, above] = [kind % 256, kind / 256].map(|of| (of as i16 - 128) as i8);
        shared_step(16 + 16 * (index as u32 % 2), zero_point, [above, 127])
    };
    let mut blob = Blob {
        arena: [16 + 16 + channels, 0, 0, 0],
        weights: vec![0; 13 * channels as usize],
        ..Blob::default()
    };
    for index in 0..steps {
        blob = blob.step(&step(index));
    }
    blob.file()
}

fn shared_step(output: u32, output_zero_point: i8, clamp: [i8; 2]) -> Step {
    let channels = u32::from(SHARED_CHANNELS);
    Step::Conv2dS8(Conv2dS8 {
        output: at(output),
        input: at(0),
        scratch: Slot::default(),
        weights: 0,
        channels,
        window: Window2d {
            batch: 1,
            input: [1, 1, 1],
            output: [1, 1, SHARED_CHANNELS],
            kernel: [1, 1],
            stride: [1, 1],
            dilation: [1, 1],
            padding: [0, 0],
        },
        groups: 1,
        input_zero_point: 0,
        output_zero_point,
        clamp,
        flags: 0,
    })
}
