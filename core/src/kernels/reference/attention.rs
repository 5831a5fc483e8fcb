//! Attention over the lines of a state: [`crate::ops::attention`].

use super::{at, read, written};
use crate::arena::Mem;
use crate::ops::attention::AttentionF32;

pub(crate) fn f32(op: &AttentionF32, mem: &Mem<'_>) -> Option<()> {
    let [heads, kv_heads, width, capacity] =
        [op.heads, op.kv_heads, op.width, op.capacity].map(|extent| extent as usize);
    let (of_query, of_cache) = ([heads, width], [kv_heads, capacity, width]);
    let query = read::<f32>(mem, op.query, heads * width)?;
    let keys = read::<f32>(mem, op.keys, kv_heads * capacity * width)?;
    let values = read::<f32>(mem, op.values, kv_heads * capacity * width)?;
    let output = written::<f32>(mem, op.output, heads * width)?;
    let position = usize::try_from(read::<i32>(mem, op.position, 1)?.get(0)?).ok()?;
    for head in 0..heads {
        let shared = head / (heads / kv_heads);
        let score = |line: usize| {
            let mut sum = 0.0_f64;
            for i in 0..width {
                let of_query = f64::from(query.get(at(of_query, [head, i]))?);
                sum += of_query * f64::from(keys.get(at(of_cache, [shared, line, i]))?);
            }
            Some(sum * f64::from(op.scale))
        };
        let mut largest = f64::NEG_INFINITY;
        for line in 0..=position {
            largest = largest.max(score(line)?);
        }
        let mut total = 0.0;
        for line in 0..=position {
            total += libm::exp(score(line)? - largest);
        }
        for i in 0..width {
            let mut sum = 0.0;
            for line in 0..=position {
                let weight = libm::exp(score(line)? - largest) / total;
                sum += weight * f64::from(values.get(at(of_cache, [shared, line, i]))?);
            }
            output.set(at(of_query, [head, i]), sum as f32)?;
        }
    }
    Some(())
}
