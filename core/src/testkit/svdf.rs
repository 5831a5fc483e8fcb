//! Cases of an int8 SVDF for [`super::compare`].

use super::cases;
use super::compare::{Bench, Constants, Prepared, write};
use super::jobs::Stated;
use super::memory::{CHANNELS, Workspace};
use crate::cells::cast_slice;
use crate::kernels::api::candidate::{Candidate, Job, PlainS8, PlainSvdf};
use crate::kernels::reference;
use crate::ops::operator::Operator;
use crate::ops::packed_conv2d::Form;
use crate::ops::svdf::{PackedSvdfS8, SvdfS8};

impl Bench<'_> {
    #[inline(never)]
    pub(super) fn svdf<K: Candidate>(&mut self, _: u32) -> Prepared {
        match self.state_svdf::<K>() {
            Some(Stated { step, plain }) => {
                let data = self.integers();
                self.against::<K, _>(&step, plain, reference::svdf::s8, Constants::Plain, &data)
            }
            None => None,
        }
    }

    #[inline(never)]
    fn state_svdf<K: Candidate>(&mut self) -> Option<Stated<K, SvdfS8>> {
        let op = cases::svdf(&mut self.random);
        let random = &mut self.random;
        let Workspace {
            plain,
            channels,
            constants,
            ..
        } = &mut *self.workspace;
        let shape = op.shape;
        let [filters, units] = [shape.filters(), shape.units].map(|extent| extent as usize);
        let (features, memory) = (shape.features as usize, shape.memory as usize);
        let (weights, behind) = plain.0.split_at_mut_checked(filters * features)?;
        let (times, behind) = behind.split_at_mut_checked(filters * memory)?;
        let channels = channels.get_mut(..filters)?;
        let mut bias = [0; CHANNELS];
        let bias = bias.get_mut(..units)?;
        for weights in [&mut *weights, &mut *times] {
            let limit = cases::limit(random);
            for weight in weights {
                *weight = (random.below(2 * limit + 1) as i32 - limit as i32) as u8;
            }
        }
        bias.fill_with(|| random.below(20_000) as i32 - 10_000);
        let [into_state, into_output] = op.multipliers;
        channels.fill([0, into_state.mantissa, into_state.shift.into()]);
        let job = Job::SvdfS8(
            PackedSvdfS8 {
                output: op.output,
                input: op.input,
                state: op.state,
                scratch: op.output,
                shape,
                weights: 0,
                form: Form::General,
                zero: [op.zero[0] as i8, op.zero[2] as i8],
                multiplier: into_output,
            },
            PlainSvdf {
                features: PlainS8 {
                    weights: cast_slice(weights)?,
                    channels,
                },
                times: cast_slice(times)?,
                bias,
            },
        );
        let mut step = K::step(&job).filter(K::supports)?;
        let packed = constants.0.get_mut(..K::needs(&step).weights as usize)?;
        K::pack(&job, &step, packed, &mut [])?;
        step.set_constants(0, 0);
        let at = (filters * (features + memory)).next_multiple_of(4);
        write(
            behind.get_mut(at - filters * (features + memory)..)?,
            bias,
            i32::to_le_bytes,
        )?;
        let plain = SvdfS8 {
            time_weights: (filters * features) as u32,
            bias: at as u32,
            ..op
        };
        Some(Stated { step, plain })
    }
}
