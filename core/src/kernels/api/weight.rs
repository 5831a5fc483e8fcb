//! Weights of kernels: units of cost for each that the operator's formula counts.

/// Quarters of a unit for each product and element of a kernel, such that on every board a unit takes about as many instructions at most as one of any other
/// kernel: `tests/tests/boards/cost_axes.rs` counts them. A whole unit is the int8 convolution for cores without SIMD. A macro, since the table of
/// kernels imports it.
macro_rules! weight {
    ($kernel:expr) => {
        match $kernel {
            // Vectors and pairs of bytes, where they are for less than a whole.
            KernelId::DspSvdfS8 => 1,
            KernelId::MveDepthwiseF32 => 2,
            KernelId::DspAvgPoolS8
            | KernelId::DspGroupsConv2dS8
            | KernelId::DspMaxPoolS8
            | KernelId::DspSumS8
            | KernelId::DspW4Conv2dS8
            | KernelId::MveDepthwiseS8
            | KernelId::MveSumS8 => 3,
            // Outputs of few products, each of which begins with as much as others.
            KernelId::MveLinearF32 => 4,
            // int8 and int16 in loops for any shape, and functions of them.
            KernelId::DenseS8
            | KernelId::IntAvgPoolS8
            | KernelId::IntDenseS8
            | KernelId::IntMaxPoolS8
            | KernelId::IntNarrowDenseS8
            | KernelId::Resize
            | KernelId::SignalFramer
            | KernelId::SvdfS8
            | KernelId::Table => 3,
            KernelId::Conv2dS16 | KernelId::SignalPcan => 5,
            KernelId::LstmInt
            | KernelId::SignalFftS16
            | KernelId::SignalFilterBank
            | KernelId::SignalSubtraction
            | KernelId::SignalWindow
            | KernelId::TableS16 => 6,
            KernelId::ReduceInt | KernelId::SignalAutoScale => 7,
            KernelId::Choose
            | KernelId::Conv2dS8
            | KernelId::IntDepthwiseS8
            | KernelId::IntSumS8
            | KernelId::SignalEnergy
            | KernelId::SignalOverlapAdd
            | KernelId::SignalSquareRoot
            | KernelId::SignalStacker => 8,
            KernelId::AvgPoolInt | KernelId::CompactAvgPoolS8 | KernelId::GlobalAvgPoolS8 => 9,
            KernelId::CompactMaxPoolS8 | KernelId::IntAddS8 | KernelId::MaxPoolInt | KernelId::SignalFftS32 => 10,
            KernelId::L2NormS8 | KernelId::LrnS8 => 12,
            KernelId::Compare | KernelId::Detections | KernelId::SpecialInt => 14,
            KernelId::BinaryInt => 20,
            KernelId::DepthwiseS8 | KernelId::SigmoidS16 => 22,
            KernelId::Rescale => 26,
            KernelId::W4Conv2dS8 => 28,
            KernelId::ArgMax => 34,
            KernelId::LocallyConnectedS8 => 52,
            KernelId::SoftmaxInt => 105,
            KernelId::SoftmaxS8 => 172,
            // f32 as it is without an FPU.
            KernelId::SpecialF32 | KernelId::UnaryF32 => 3,
            KernelId::MaxPoolF32 => 24,
            KernelId::FpuDepthwiseF32 => 28,
            KernelId::BinaryF32 => 32,
            KernelId::EmbeddingW8 => 33,
            KernelId::AvgPoolF32 | KernelId::SignalFftF32 => 36,
            KernelId::Convert | KernelId::RotaryF32 => 40,
            KernelId::ReduceF32 => 45,
            KernelId::FpuConv2dF32 | KernelId::LinearF32 | KernelId::RmsNormF32 => 48,
            KernelId::AttentionF32 | KernelId::SvdfF32 => 50,
            KernelId::Conv2dF32 | KernelId::DepthwiseF32 | KernelId::LstmF32 => 52,
            KernelId::W4Conv2dF32 | KernelId::W8Conv2dF32 => 56,
            KernelId::LocallyConnectedF32 => 58,
            KernelId::W16Conv2dF32 => 64,
            KernelId::ActivationGradF32 => 44,
            KernelId::AvgPoolGradF32 | KernelId::MaxPoolGradF32 => 36,
            KernelId::BiasSgdF32 | KernelId::MaxPoolPositionsF32 => 45,
            KernelId::Conv2dInputGradF32
            | KernelId::Conv2dWeightSgdF32
            | KernelId::BatchNormF32
            | KernelId::BatchNormGradF32
            | KernelId::BatchStatisticsF32
            | KernelId::LinearInputGradF32
            | KernelId::LinearWeightSgdF32
            | KernelId::LocallyConnectedInputGradF32
            | KernelId::LocallyConnectedWeightSgdF32
            | KernelId::SquaredErrorF32
            | KernelId::TrainedConv2dF32 => 58,
            KernelId::LocallyConnectedGainGradF32 | KernelId::TrainedLocallyConnectedF32 => 66,
            KernelId::LrnF32 | KernelId::LrnGradF32 => 172,
            KernelId::SpecialBinaryF32 => 264,
            KernelId::SoftmaxCrossEntropyF32 | KernelId::SoftmaxF32 => 600,
            kernel => match kernel.backend() {
                Backend::Mve | Backend::Neon | Backend::Dotprod | Backend::I8mm | Backend::Sme => 1,
                Backend::Dsp | Backend::Rvv => 2,
                _ => 4,
            },
        }
    };
}

pub(in crate::kernels) use weight;
