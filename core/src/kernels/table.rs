//! Every kernel, once: number in the blob, name, backend, implementation.
//!
//! The numbers are part of the format: a kernel keeps its number for ever, and a retired number is not used again.

#[cfg(any(test, packing))]
use core::any::{Any, TypeId};
#[cfg(feature = "rolling")]
use core::cell::Cell;

use serde::de::DeserializeOwned;

use crate::arena::{Bounds, Mem, Operand, Place, Slot};
use crate::fields::{Fields, Malformed};
#[cfg(any(test, packing))]
use crate::kernels::api::candidate::{Candidate, Job, JobKind, Layout, Machine};
use crate::kernels::api::kernel::Kernel;
use crate::kernels::api::overlap::{Operands, check_operands};
#[cfg(feature = "rolling")]
use crate::kernels::api::turn::{Rolls, check_rows, turned};
use crate::kernels::api::weight::weight;
use crate::kernels::{Backend, compact, dotprod, dsp, ethos_u, fpu, i8mm, mve, neon, packed, portable, rvv, sme};
use crate::ops::cost::Cost;
use crate::ops::fault::Fault;
use crate::ops::operator::{Needs, Operator, Placed};
use crate::ops::position::OutOfRange;
use crate::ops::window::Window2d;
use crate::ops::{binary, pointwise};
#[cfg(feature = "rolling")]
use crate::rolled::Turn;
#[cfg(any(test, packing))]
use crate::target::Target;
use crate::trusted::{Before, Record};

/// A set of kernels: bit `n % 32` of word `n / 32` stands for kernel number `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct KernelSet(pub [u32; 8]);

impl KernelSet {
    /// No kernel.
    pub const EMPTY: Self = Self([0; 8]);
    /// Every number that there can be.
    pub const ALL: Self = Self([u32::MAX; 8]);

    /// Whether the kernel of this number is in it.
    pub const fn has(self, number: u8) -> bool {
        // Of eight words the index is one, which the compiler sees.
        (self.0[number as usize / 32] >> (number % 32)) & 1 == 1
    }

    /// With the kernel of this number.
    #[must_use]
    pub const fn with(mut self, number: u8) -> Self {
        self.0[number as usize / 32] |= 1 << (number % 32);
        self
    }

    /// Without the kernels of the numbers from `first` to `last`.
    #[must_use]
    pub const fn without(mut self, first: u8, last: u8) -> Self {
        let mut number = first;
        while number < last {
            self.0[number as usize / 32] &= !(1 << (number % 32));
            number += 1;
        }
        self.0[last as usize / 32] &= !(1 << (last % 32));
        self
    }

    /// With all kernels of another set.
    #[must_use]
    pub const fn union(mut self, other: Self) -> Self {
        let mut at = 0;
        while at < self.0.len() {
            self.0[at] |= other.0[at];
            at += 1;
        }
        self
    }
}

/// The kernels that a program links.
///
/// `include_model!` derives it from the model, so that only what the model needs is linked; [`All`] links everything.
pub trait Kernels {
    /// Those of these numbers.
    const SET: KernelSet;
}

/// Links every kernel of this build.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct All;

impl Kernels for All {
    const SET: KernelSet = KernelSet::ALL;
}

/// Receiver of the type that [`KernelId::visit`] finds.
#[cfg(any(test, packing))]
pub trait KernelVisitor {
    /// Result of the call.
    type Output;

    /// Called with the kernel's type.
    fn visit<K: Candidate>(self) -> Self::Output;
}

/// Receiver of the types that [`visit_operators`] finds.
#[cfg(feature = "pack")]
pub trait OperatorVisitor {
    /// Called with the operator of `kernel`.
    fn visit<O: serde::Serialize + serde::de::DeserializeOwned + core::fmt::Debug>(&mut self, kernel: KernelId);
}

macro_rules! table {
    ($($id:literal $variant:ident $backend:ident $kernel:ty;)*) => {
        /// A kernel's number and name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[repr(u8)]
        #[expect(missing_docs, reason = "each is documented at its implementation")]
        pub enum KernelId { $($variant = $id),* }

        impl KernelId {
            /// All kernels; those of a backend in the order in which packing tries them.
            pub const ALL: &'static [KernelId] = &[$(KernelId::$variant),*];

            /// The kernel of this number.
            pub const fn from_u8(id: u8) -> Option<Self> {
                match id {
                    $($id => Some(KernelId::$variant),)*
                    _ => None,
                }
            }

            /// Its name in reports and errors.
            pub const fn name(self) -> &'static str {
                match self { $(KernelId::$variant => stringify!($variant)),* }
            }

            /// The backend that it belongs to.
            pub const fn backend(self) -> Backend {
                match self { $(KernelId::$variant => Backend::$backend),* }
            }
        }

        #[cfg(any(test, packing))]
        impl KernelId {
            /// Calls `visitor` with the kernel of this number.
            pub fn visit<V: KernelVisitor>(self, visitor: V) -> V::Output {
                match self { $(KernelId::$variant => visitor.visit::<$kernel>()),* }
            }

            /// As [`KernelId::visit`] where this build has the kernel; what it has not is not compiled in: the test kit has to fit small boards.
            pub fn visit_available<V: KernelVisitor>(self, visitor: V) -> Option<V::Output> {
                match self {
                    $(KernelId::$variant if const { Backend::$backend.available() } => Some(visitor.visit::<$kernel>()),)*
                    _ => None,
                }
            }

            /// [`Candidate::JOB`].
            pub const fn job(self) -> Option<JobKind> {
                match self { $(KernelId::$variant => <$kernel as Candidate>::JOB),* }
            }

            /// [`Candidate::BIAS`].
            pub const fn wants_bias(self) -> bool {
                match self { $(KernelId::$variant => <$kernel as Candidate>::BIAS),* }
            }

            /// [`Candidate::SPENDS_FLASH`].
            pub const fn spends_flash(self) -> bool {
                match self { $(KernelId::$variant => <$kernel as Candidate>::SPENDS_FLASH),* }
            }

            /// [`Candidate::CHANNELS`].
            pub const fn channels(self) -> usize {
                match self { $(KernelId::$variant => <$kernel as Candidate>::CHANNELS),* }
            }

            /// The candidates for the jobs of a program for `target`, in the order of preference; `size`: where small code is preferred over speed.
            pub fn candidates(target: Target, size: bool) -> impl Iterator<Item = KernelId> {
                Backend::order(target, size).flat_map(|backend| {
                    let all = KernelId::ALL.iter().copied();
                    all.filter(move |kernel| kernel.backend() == backend && kernel.job().is_some())
                })
            }
        }

        /// A step as the host sees it: a kernel with its operator's parameters. The device decodes one kernel's parameters at a
        /// time and never builds this.
        #[derive(Debug, Clone)]
        #[expect(missing_docs, reason = "each is documented at its implementation")]
        pub enum Step<P: Place = Slot> { $($variant(Over<$kernel, P>)),* }

        impl Step {
            /// Decodes a record's parameters.
            ///
            /// # Errors
            /// [`Fault::Encoding`].
            pub fn decode(kernel: KernelId, params: &[u8]) -> Result<Self, Fault> {
                match kernel {
                    $(KernelId::$variant => decode(params).map(Step::$variant).map_err(|_| Fault::Encoding)),*
                }
            }

            /// Encodes the parameters into `buffer`; `None` where it is too small.
            #[cfg(feature = "pack")]
            pub fn encode<'b>(&self, buffer: &'b mut [u8]) -> Option<&'b mut [u8]> {
                match self { $(Step::$variant(op) => postcard::to_slice(op, buffer).ok()),* }
            }
        }

        /// Calls `visitor` with each kernel's operator type, as it is in the file.
        #[cfg(feature = "pack")]
        pub fn visit_operators<V: OperatorVisitor>(visitor: &mut V) {
            $(visitor.visit::<Over<$kernel, Slot>>(KernelId::$variant);)*
        }

        impl<P: Place> Step<P> {
            /// Its kernel.
            pub fn kernel(&self) -> KernelId {
                match self { $(Step::$variant(_) => KernelId::$variant),* }
            }

            /// Scratch and packed weights of the kernel.
            pub fn needs(&self) -> Needs {
                match self { $(Step::$variant(op) => <$kernel as Kernel>::needs(&op.clone().parameters())),* }
            }

            /// [`Kernel::ROLLS`].
            #[cfg(feature = "rolling")]
            pub fn rolls(&self) -> Rolls {
                match self { $(Step::$variant(_) => <$kernel as Kernel>::ROLLS),* }
            }

            /// [`Kernel::distance`].
            pub fn distance(&self, index: usize) -> Option<i64> {
                match self { $(Step::$variant(op) => <$kernel as Kernel>::distance(&op.clone().parameters(), index)),* }
            }

            /// [`Kernel::in_place`].
            pub fn in_place(&self, index: usize) -> bool {
                match self { $(Step::$variant(op) => <$kernel as Kernel>::in_place(&op.clone().parameters(), index)),* }
            }

            /// [`Operator::check`] and [`Kernel::supports`], without the operands' places.
            ///
            /// # Errors
            /// The first check that failed.
            pub fn check(&self) -> Result<(), Fault> {
                match self {
                    $(Step::$variant(op) => {
                        op.check()?;
                        match <$kernel as Kernel>::supports(&op.clone().parameters()) {
                            true => Ok(()),
                            false => Err(Fault::Unsupported),
                        }
                    })*
                }
            }

            /// [`Operator::operands`].
            pub fn operands(&self, visit: &mut dyn FnMut(Operand<P>)) {
                match self { $(Step::$variant(op) => op.operands(self.needs(), visit)),* }
            }

            /// [`Operator::cost`]: what is computed, whichever kernel does it.
            pub fn work(&self) -> Cost {
                match self { $(Step::$variant(op) => op.cost(self.needs())),* }
            }

            /// [`Step::work`] with the kernel's weight, as [`crate::Model::costs`] has it.
            pub fn cost(&self) -> Cost {
                self.work().quarters(weight!(self.kernel()))
            }

            /// [`Operator::window_mut`].
            pub fn window_mut(&mut self) -> Option<&mut Window2d> {
                match self { $(Step::$variant(op) => op.window_mut()),* }
            }

            /// Whether it takes each element of its output from the same one of each operand ([`Operator::elements_mut`]), and of how many.
            pub fn elements(&self) -> Option<u32> {
                match self.clone() { $(Step::$variant(mut op) => op.elements_mut().copied()),* }
            }

            /// How many rows it sums up, of which any may come alone ([`Operator::summed_mut`]).
            #[cfg(feature = "rolling")]
            pub fn summed(&self) -> Option<u16> {
                match self.clone() { $(Step::$variant(mut op) => op.summed_mut().copied()),* }
            }

            /// The step that sums up one row; `None` for other steps.
            #[cfg(feature = "rolling")]
            pub fn of_summed_row(mut self) -> Option<Self> {
                match &mut self { $(Step::$variant(op) => *op.summed_mut()? = 1),* }
                self.check().is_ok().then_some(self)
            }

            /// The step that computes so many elements of such an output; `None` where no kernel does.
            pub fn of_elements(mut self, count: u32) -> Option<Self> {
                match &mut self { $(Step::$variant(op) => *op.elements_mut()? = count),* }
                self.check().is_ok().then_some(self)
            }

            /// Visits the places that the step states, in the order of its fields; constants that are always in the weights are none.
            pub fn each_place(&self, visit: &mut dyn FnMut(P)) {
                let mut each = |place| {
                    visit(place);
                    Ok::<_, core::convert::Infallible>(place)
                };
                let Ok(_) = self.clone().map(&mut each);
            }

            /// The step of `kernel` that does `job`, without its constants; `None` where the kernel is not meant for it.
            #[cfg(any(test, packing))]
            pub fn candidate(kernel: KernelId, job: &Job<'_, P>) -> Option<Self> {
                match kernel {
                    $(KernelId::$variant => {
                        let op = <$kernel as Candidate>::step(job)?;
                        <$kernel as Kernel>::supports(&op.clone().parameters()).then(|| Step::$variant(op))
                    })*
                }
            }

            /// [`Candidate::layout`].
            #[cfg(any(test, packing))]
            pub fn layout(&self) -> Layout {
                match self { $(Step::$variant(op) => <$kernel as Candidate>::layout(&op.clone().parameters())),* }
            }

            /// [`Candidate::RECORDS`].
            #[cfg(any(test, packing))]
            pub fn has_records(&self) -> bool {
                match self { $(Step::$variant(_) => <$kernel as Candidate>::RECORDS),* }
            }

            /// [`Candidate::pack`].
            #[cfg(any(test, packing))]
            pub fn pack(&self, job: &Job<'_>, packed: &mut [u8], records: &mut [[i32; 3]]) -> Option<()> {
                match self {
                    $(Step::$variant(op) => <$kernel as Candidate>::pack(job, &op.clone().parameters(), packed, records)),*
                }
            }

            /// [`Operator::set_constants`].
            #[cfg(any(test, packing))]
            pub fn set_constants(&mut self, weights: u32, records: u32) {
                match self { $(Step::$variant(op) => op.set_constants(weights, records)),* }
            }

            /// [`Candidate::pieces_taken`].
            #[cfg(any(test, packing))]
            pub fn pieces(&self, weights: &[u8]) -> u32 {
                match self {
                    $(Step::$variant(op) => <$kernel as Candidate>::pieces_taken(&op.clone().parameters(), weights)),*
                }
            }

            /// [`Candidate::bound`].
            #[cfg(any(test, packing))]
            pub fn bound(&self, on: &Machine) -> Option<u64> {
                match self { $(Step::$variant(op) => <$kernel as Candidate>::bound(&op.clone().parameters(), on)),* }
            }

            /// The step that computes the part of the output that `window` describes, with the same constants. `None` where they would be others, or no
            /// kernel computes that part.
            #[cfg(any(test, packing))]
            pub fn part(&self, window: Window2d) -> Option<Self>
            where
                P: 'static,
            {
                let of_parts = match self { $(Step::$variant(_) => <$kernel as Candidate>::of_parts()),* };
                let steps: [Option<Self>; 2] = match self {
                    $(Step::$variant(op) => [Some(self.clone()), Self::of_kernel(of_parts, op)]),*
                };
                steps.into_iter().flatten().find_map(|mut step| {
                    *step.window_mut()? = window;
                    (step.needs().weights == self.needs().weights && step.check().is_ok()).then_some(step)
                })
            }

            /// The step that makes its output row by row, with the same constants: this one, or that of the kernel of its parts. `None` where none does.
            #[cfg(all(feature = "rolling", any(test, packing)))]
            pub fn by_rows(&self) -> Option<Self>
            where
                P: 'static,
            {
                if self.rolls() != Rolls::No {
                    return Some(self.clone());
                }
                let of_parts = match self { $(Step::$variant(_) => <$kernel as Candidate>::of_parts()),* };
                let other = match self { $(Step::$variant(op) => Self::of_kernel(of_parts, op)),* };
                other.filter(|step| step.rolls() != Rolls::No && step.needs().weights == self.needs().weights)
            }

            /// The step of the kernel of this type that has the operator `op`.
            #[cfg(any(test, packing))]
            fn of_kernel(kernel: TypeId, op: &dyn Any) -> Option<Self>
            where
                P: 'static,
            {
                $(if kernel == TypeId::of::<$kernel>() {
                    return op.downcast_ref::<Over<$kernel, P>>().cloned().map(Step::$variant);
                })*
                None
            }

            /// [`Placed::map`].
            ///
            /// # Errors
            /// The first of `each`.
            pub fn map<Q: Place, E>(self, each: &mut impl FnMut(P) -> Result<Q, E>) -> Result<Step<Q>, E> {
                match self { $(Step::$variant(op) => op.map(each).map(Step::$variant)),* }
            }
        }

        /// Checks one record as load does.
        pub(crate) fn check_step<K: Kernels>(id: u8, params: &[u8], bounds: &Bounds<'_>) -> Option<Result<(), Fault>> {
            match id {
                $($id if knows::<K>($id, Backend::$backend) => Some(check::<$kernel>((id, params), bounds)),)*
                _ => None,
            }
        }

        /// Cost of a record that [`check_step`] accepted.
        pub(crate) fn cost_step<K: Kernels>(id: u8, params: &[u8]) -> Option<Cost> {
            match id {
                $($id if knows::<K>($id, Backend::$backend) => {
                    let decoded = decode::<<$kernel as Kernel>::Op>(params);
                    let op = decoded.as_ref().ok()?;
                    Some(op.cost(<$kernel as Kernel>::needs(op)).quarters(weight!(KernelId::$variant)))
                })*
                _ => None,
            }
        }

        /// Visits the operands of one record that [`check_step`] accepted.
        #[cfg(feature = "accelerators")]
        pub(crate) fn operands_step<K: Kernels>(id: u8, params: &[u8], visit: &mut dyn FnMut(Operand)) -> Option<()> {
            match id {
                $($id if knows::<K>($id, Backend::$backend) => {
                    let decoded = decode::<<$kernel as Kernel>::Op>(params);
                    let op = decoded.as_ref().ok()?;
                    op.operands(<$kernel as Kernel>::needs(op), visit);
                    Some(())
                })*
                _ => None,
            }
        }

        /// Whether `K` and this build have a kernel that takes indices.
        pub(crate) const fn has_indexed<K: Kernels>() -> bool {
            false $(|| (links::<K>($id, Backend::$backend) && <$kernel as Kernel>::INDEXED))*
        }

        /// The index that a record refuses, which [`run_step`] did not run.
        pub(crate) fn refused_index<K: Kernels>(id: u8, params: &[u8], mem: &Mem<'_>) -> Option<OutOfRange> {
            match id {
                $($id if links::<K>($id, Backend::$backend) && <$kernel as Kernel>::INDEXED => {
                    <$kernel as Kernel>::out_of_range(decode(params).as_ref().ok()?, mem)
                })*
                _ => None,
            }
        }

        /// Runs one record that [`check_step`] accepted.
        pub(crate) fn run_step<K: Kernels>(id: u8, params: &[u8], mem: &Mem<'_>) -> Option<()> {
            match id {
                $($id if links::<K>($id, Backend::$backend) => {
                    // No generic code, so that it is compiled with this crate's optimisation and not with that of the crate that chose `K`.
                    #[inline(never)]
                    fn compute(op: &<$kernel as Kernel>::Op, mem: &Mem<'_>) -> Option<()> {
                        <$kernel as Kernel>::run(op, mem)
                    }
                    run(params, mem, compute)
                })*
                _ => None,
            }
        }
    };
}

/// A kernel's operator over places `P`.
type Over<K, P> = <<K as Kernel>::Op as Placed>::Over<P>;

/// Calls the macro of this name with all rows of the table; their paths are those of `kernels` and `ops`.
macro_rules! kernels {
    ($with:ident) => {
        $with! {
            0 Conv2dF32 Scalar portable::conv2d::F32;
            1 DepthwiseF32 Scalar portable::conv2d::DepthwiseF32;
            2 LinearF32 Scalar portable::linear_f32::F32;
            3 LocallyConnectedF32 Scalar portable::locally_connected::F32;
            4 MaxPoolF32 Scalar portable::pool2d::MaxF32;
            5 AvgPoolF32 Scalar portable::pool2d::AvgF32;
            6 BinaryF32 Scalar portable::elementwise::Binary<binary::BinaryOp>;
            7 UnaryF32 Scalar portable::elementwise::Unary<pointwise::UnaryOp>;
            8 ReduceF32 Scalar portable::reduce::F32;
            9 SoftmaxF32 Scalar portable::softmax::F32;
            10 LrnF32 Scalar portable::lrn::F32;
            11 CopyBytes Scalar portable::strided_copy::Copy;
            // Tried before the next one, which has a record for each channel.
            94 DenseS8 Scalar portable::linear_s8::S8;
            12 Conv2dS8 Scalar portable::conv2d::S8;
            13 DepthwiseS8 Scalar portable::conv2d::DepthwiseS8;
            14 Conv2dS16 Scalar portable::conv2d_s16::S16;
            15 MaxPoolInt Scalar portable::pool2d::MaxInt;
            16 AvgPoolInt Scalar portable::pool2d::AvgInt;
            17 BinaryInt Scalar portable::elementwise_s8_s16::Binary;
            18 Table Scalar portable::convert::TableKernel;
            19 Rescale Scalar portable::convert::RescaleKernel;
            20 SigmoidS16 Scalar portable::convert::SigmoidKernel;
            160 TableS16 Scalar portable::convert::TableS16Kernel;
            21 Convert Scalar portable::convert::ConvertKernel;
            22 ReduceInt Scalar portable::reduce::Quantised;
            23 SoftmaxInt Scalar portable::softmax::Quantised;
            24 Resize Scalar portable::resize::ResizeKernel;
            25 ArgMax Scalar portable::arg_max::ArgMaxKernel;
            26 SvdfS8 Scalar portable::svdf::S8;
            27 SvdfF32 Scalar portable::svdf::F32;
            28 LstmInt Scalar portable::lstm::Quantised;
            29 LstmF32 Scalar portable::lstm::F32;
            30 SoftmaxS8 Scalar portable::softmax::S8;
            31 SpecialF32 Scalar portable::elementwise::Unary<pointwise::SpecialOp>;
            32 SpecialBinaryF32 Scalar portable::elementwise::Binary<binary::SpecialBinaryOp>;
            33 SignalWindow Scalar portable::signal::Window;
            34 SignalAutoScale Scalar portable::signal::AutoScale;
            35 SignalFftS16 Scalar portable::fft::Fft<i16>;
            36 SignalFftS32 Scalar portable::fft::Fft<i32>;
            37 SignalFftF32 Scalar portable::fft::Fft<f32>;
            38 SignalEnergy Scalar portable::signal::Energy;
            39 SignalFilterBank Scalar portable::signal::FilterBank;
            40 SignalSquareRoot Scalar portable::signal::SquareRoot;
            41 SignalSubtraction Scalar portable::signal::SpectralSubtraction;
            42 SignalPcan Scalar portable::signal::Pcan;
            43 SignalLog Scalar portable::signal::Log;
            44 SignalDelay Scalar portable::frames::Delay;
            45 SignalFramer Scalar portable::frames::Framer;
            46 SignalStacker Scalar portable::frames::Stacker;
            47 SignalOverlapAdd Scalar portable::frames::OverlapAdd;
            112 Compare Scalar portable::compare::CompareKernel;
            113 Choose Scalar portable::select::ChooseKernel;
            114 SpecialInt Scalar portable::special_s8_s16::Special;
            115 MatMulInt Scalar portable::matmul::Quantised;
            116 Gather Scalar portable::gather::GatherKernel;
            127 AttentionF32 Scalar portable::attention::F32;
            128 WriteLine Scalar portable::write_line::WriteLineKernel;
            129 Embedding Scalar portable::embedding::EmbeddingKernel;
            130 RmsNormF32 Scalar portable::rms_norm::F32;
            131 RotaryF32 Scalar portable::rotary::F32;
            132 Position Scalar portable::position::PositionKernel;
            133 EmbeddingW8 Scalar portable::embedding::W8;
            90 LocallyConnectedS8 Scalar portable::locally_connected::S8;
            91 LrnS8 Scalar portable::lrn::S8;
            77 Detections Scalar portable::detections::DetectionsKernel;
            78 L2NormS8 Scalar portable::l2_norm::S8;
            152 GlobalAvgPoolS8 Scalar portable::global_pool::S8;
            134 W16Conv2dF32 Scalar portable::low_bit::F32<16>;
            74 W8Conv2dF32 Scalar portable::low_bit::F32<8>;
            75 W4Conv2dF32 Scalar portable::low_bit::F32<4>;
            76 W4Conv2dS8 Scalar portable::low_bit::S8W4;
            140 TrainedConv2dF32 Scalar portable::conv2d_train::Forward;
            141 Conv2dInputGradF32 Scalar portable::conv2d_train::InputGrad;
            142 Conv2dWeightSgdF32 Scalar portable::conv2d_train::WeightSgd;
            143 LinearInputGradF32 Scalar portable::linear_train::InputGrad;
            144 LinearWeightSgdF32 Scalar portable::linear_train::WeightSgd;
            145 BiasSgdF32 Scalar portable::linear_train::BiasSgd;
            146 MaxPoolPositionsF32 Scalar portable::pool2d_train::MaxPositions;
            147 MaxPoolGradF32 Scalar portable::pool2d_train::MaxGrad;
            148 AvgPoolGradF32 Scalar portable::pool2d_train::AvgGrad;
            149 ActivationGradF32 Scalar portable::activation_grad::F32;
            150 SoftmaxCrossEntropyF32 Scalar portable::loss::SoftmaxCrossEntropy;
            151 SquaredErrorF32 Scalar portable::loss::SquaredError;
            153 LrnGradF32 Scalar portable::lrn_grad::F32;
            154 TrainedLocallyConnectedF32 Scalar portable::locally_connected_train::Forward;
            155 LocallyConnectedInputGradF32 Scalar portable::locally_connected_train::InputGrad;
            156 LocallyConnectedWeightSgdF32 Scalar portable::locally_connected_train::WeightSgd;
            157 LocallyConnectedGainGradF32 Scalar portable::locally_connected_train::GainGrad;
            158 BatchNormF32 Scalar portable::batch_norm::F32;
            159 BatchStatisticsF32 Scalar portable::batch_norm::Statistics;
            161 BatchNormGradF32 Scalar portable::batch_norm::Grad;
            // Tried before the next one, where flash may be spent.
            71 IntWinogradConv2dS8 Int packed::conv2d_s8_winograd::S8;
            48 IntConv2dS8 Int packed::conv2d_s8::S8;
            49 IntDepthwiseS8 Int packed::dwconv_s8::S8;
            50 IntDenseS8 Int packed::linear_s8::S8;
            // Taken where flash is not spent on the one before.
            125 IntNarrowDenseS8 Int packed::linear_s8::Narrow;
            51 IntSumS8 Int packed::add_s8_linear::S8;
            52 IntAddS8 Int packed::add_s8::S8;
            53 IntAvgPoolS8 Int packed::pool2d_s8::Average;
            54 IntMaxPoolS8 Int packed::pool2d_s8::Max;
            104 IntSvdfS8 Int packed::svdf_s8::S8;
            // Tried before the next one, which has room for any sums.
            79 DspDenseS8 Dsp dsp::linear_s8::S8;
            69 DspPairsConv2dS8 Dsp dsp::conv2d_s8_paired::S8;
            64 DspConv2dS8 Dsp dsp::conv2d_s8::S8;
            // Likewise; of 3x3 windows.
            70 DspSlidingDepthwiseS8 Dsp dsp::dwconv_s8_3x3_s1::S8;
            65 DspDepthwiseS8 Dsp dsp::dwconv_s8::S8;
            92 DspW4Conv2dS8 Dsp dsp::conv2d_s8_w4::S8;
            110 DspGroupsConv2dS8 Dsp dsp::conv2d_s8_w4_groups::S8;
            66 DspSumS8 Dsp dsp::add_s8_linear::S8;
            67 DspAvgPoolS8 Dsp dsp::pool2d_s8::Average;
            68 DspMaxPoolS8 Dsp dsp::pool2d_s8::Max;
            59 DspSvdfS8 Dsp dsp::svdf_s8::S8;
            72 FpuConv2dF32 Fpu fpu::conv2d_f32::F32;
            73 FpuDepthwiseF32 Fpu fpu::dwconv_f32::F32;
            // Tried before the next one, which has factors for each channel.
            95 MveDenseS8 Mve mve::linear_s8::S8;
            80 MveConv2dS8 Mve mve::conv2d::S8;
            81 MveDepthwiseS8 Mve mve::dwconv_s8::S8;
            89 MveTapsDepthwiseS8 Mve mve::dwconv_s8_indirection::S8;
            93 MveW4Conv2dS8 Mve mve::conv2d::S8W4;
            111 MveGroupsConv2dS8 Mve mve::conv2d_s8_w4_groups::S8;
            82 MveConv2dF32 Mve mve::conv2d::F32;
            83 MveDepthwiseF32 Mve mve::dwconv_f32::F32;
            126 MveLinearF32 Mve mve::linear_f32::F32;
            // Tried before the next one, which takes any sum.
            124 MveLinearSumS8 Mve mve::add_s8_linear::S8;
            84 MveSumS8 Mve mve::add_s8::SumS8;
            85 MveMaxPoolS8 Mve mve::pool2d_s8::MaxS8;
            86 MveAvgPoolS8 Mve mve::pool2d_s8::AvgS8;
            105 MveSvdfS8 Mve mve::svdf_s8::S8;
            87 DotprodConv2dS8 Dotprod dotprod::conv2d_s8::S8;
            99 SmeConv2dS8 Sme sme::conv2d_s8::S8;
            120 I8mmConv2dS8 I8mm i8mm::conv2d_s8::S8;
            88 NeonDepthwiseS8 Neon neon::dwconv_s8::S8;
            119 NeonConv2dS8 Neon neon::conv2d_s8::S8;
            117 NeonConv2dF32 Neon neon::conv2d_f32::F32;
            118 NeonDepthwiseF32 Neon neon::dwconv_f32::F32;
            121 RvvConv2dS8 Rvv rvv::conv2d_s8::S8;
            122 RvvDepthwiseS8 Rvv rvv::dwconv_s8::S8;
            123 RvvSumS8 Rvv rvv::add_s8_linear::S8;
            96 CompactConv2dS8 Compact compact::conv2d_s8::S8;
            97 CompactMaxPoolS8 Compact compact::pool2d_s8::Max;
            98 CompactAvgPoolS8 Compact compact::pool2d_s8::Average;
            55 EthosU EthosU ethos_u::stream::Stream;
        }
    };
}
#[cfg(feature = "testkit")]
pub(crate) use kernels;
kernels!(table);

/// Types of the kernels, by their names: compiled models call them.
#[cfg(feature = "include")]
pub mod types {
    use super::*;

    macro_rules! named {
        ($($id:literal $variant:ident $backend:ident $kernel:ty;)*) => {
            $(#[expect(missing_docs, reason = "each is documented at its implementation")] pub type $variant = $kernel;)*
        };
    }
    kernels!(named);
}

/// [`Kernel::run_pieces`] of the kernels, by their names. No generic code, so that it is compiled with this crate's optimisation.
#[cfg(feature = "include")]
pub mod runs {
    use super::*;

    macro_rules! run {
        ($($id:literal $variant:ident $backend:ident $kernel:ty;)*) => {$(
            #[expect(missing_docs, non_snake_case, reason = "each is documented at its implementation")]
            pub fn $variant(op: &<$kernel as Kernel>::Op, mem: &Mem<'_>, pieces: u32) -> Option<()> {
                <$kernel as Kernel>::run_pieces(op, mem, pieces)
            }
        )*};
    }
    kernels!(run);
}

/// Check of one record: [`check_step`] for a set of kernels.
pub(crate) type CheckStep = fn(u8, &[u8], &Bounds<'_>) -> Option<Result<(), Fault>>;

/// Whether `K` and this build have the kernel; constant, so that what is not linked is not compiled in.
const fn links<K: Kernels>(id: u8, backend: Backend) -> bool {
    K::SET.has(id) && backend.available()
}

/// As [`links`], and with accelerators kernels that this build has not: steps that are handed over are checked all the same.
const fn knows<K: Kernels>(id: u8, backend: Backend) -> bool {
    links::<K>(id, backend) || (cfg!(feature = "accelerators") && K::SET.has(id))
}

/// Whether this build has the kernel of this number.
#[cfg(feature = "accelerators")]
pub(crate) fn is_built(id: u8) -> bool {
    KernelId::from_u8(id).is_some_and(|kernel| kernel.backend().available())
}

/// Decodes an operator. To be looked at where it is: moved out of the `Result`, it would be copied.
#[inline(never)]
fn decode<O: DeserializeOwned>(params: &[u8]) -> Result<O, Malformed> {
    Fields::only(params)
}

/// The load's part of a kernel, whose bytes are measured: it reads a record of `K` and checks it.
#[cfg(feature = "include")]
pub fn checked<K: Kernel>(params: &[u8], bounds: &Bounds<'_>) -> bool {
    check::<K>((0, params), bounds).is_ok()
}

/// Checks a step of `K` as load does.
#[inline(never)]
pub(crate) fn check<K: Kernel>(record: Record<'_>, bounds: &Bounds<'_>) -> Result<(), Fault> {
    #[cfg(feature = "rolling")]
    if let Some((turn, made)) = bounds.turn.get() {
        return check_turn::<K>(record, (turn, made), bounds);
    }
    let decoded = decode::<K::Op>(record.1);
    let Ok(op) = &decoded else {
        return Err(Fault::Encoding);
    };
    check_decoded::<K>(op, record, bounds)
}

/// As [`check`], of one turn: the operator of the whole tensors, and that of the row. `made` says how many rows of each tensor there are.
#[cfg(feature = "rolling")]
#[inline(never)]
fn check_turn<K: Kernel>(
    record: Record<'_>,
    (turn, made): (&Turn<'_>, &[Cell<u16>]),
    bounds: &Bounds<'_>,
) -> Result<(), Fault> {
    let mut decoded = decode::<K::Op>(record.1);
    let Ok(op) = &mut decoded else {
        return Err(Fault::Encoding);
    };
    op.check()?;
    if K::ROLLS == Rolls::No {
        return Err(Fault::Unsupported);
    }
    turned(turn, op)?;
    op.check()?;
    if !K::supports(op) {
        return Err(Fault::Unsupported);
    }
    let needs = K::needs(op);
    check_rows(&Bound::<K> { op, needs }, (turn, K::ROLLS, made), bounds)?;
    // Constants do not depend on the row: they are trusted from the first one on.
    if K::TRUSTS && turn.row() == 0 {
        check_trusted::<K>(op, record, bounds)
    } else {
        Ok(())
    }
}

/// As [`check`]; a part of it, which is called in no other place but tests.
#[inline(always)]
pub(crate) fn check_decoded<K: Kernel>(op: &K::Op, record: Record<'_>, bounds: &Bounds<'_>) -> Result<(), Fault> {
    op.check()?;
    if !K::supports(op) {
        return Err(Fault::Unsupported);
    }
    let needs = K::needs(op);
    check_operands(&Bound::<K> { op, needs }, bounds)?;
    if !K::TRUSTS {
        return Ok(());
    }
    check_trusted::<K>(op, record, bounds)
}

/// Checks what a kernel trusts in its constants.
#[inline(always)]
fn check_trusted<K: Kernel>(op: &K::Op, record: Record<'_>, bounds: &Bounds<'_>) -> Result<(), Fault> {
    // Before they are looked at.
    match bounds.trusted.before(record, K::Op::PLACES) {
        Before::Checked => Ok(()),
        Before::Shared => Err(Fault::Shared),
        Before::No if K::trusts(op, bounds.weights) => Ok(()),
        Before::No => Err(K::UNFIT),
    }
}

/// An operator with its kernel's rules.
struct Bound<'o, K: Kernel> {
    op: &'o K::Op,
    needs: Needs,
}

impl<K: Kernel> Operands for Bound<'_, K> {
    fn each(&self, visit: &mut dyn FnMut(Operand)) {
        self.op.operands(self.needs, visit);
    }

    fn distance(&self, index: usize) -> Option<i64> {
        K::distance(self.op, index)
    }

    fn in_place(&self, index: usize) -> bool {
        K::in_place(self.op, index)
    }
}

/// A function of its own for each operator, so that a step takes the stack of its own parameters and not of the largest ones.
#[inline(never)]
fn run<O: Operator + DeserializeOwned>(
    params: &[u8],
    mem: &Mem<'_>,
    compute: fn(&O, &Mem<'_>) -> Option<()>,
) -> Option<()> {
    #[cfg(feature = "rolling")]
    {
        let mut decoded = decode::<O>(params);
        let op = decoded.as_mut().ok()?;
        if let Some(turn) = mem.turning.turn {
            turned(turn, op).ok()?;
        }
        compute(op, mem)
    }
    #[cfg(not(feature = "rolling"))]
    compute(decode(params).as_ref().ok()?, mem)
}
