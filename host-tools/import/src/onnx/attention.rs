//! Attention and the rotation of its operands, by their parts: products, a softmax, and what says which keys a query sees.

use super::array::{Array, paid};
use super::elem::{Elem, unsupported};
use super::importer::{Importer, Value, View};
use crate::error::{Error, Result};
use crate::graph::{BinaryOp, ReduceKind, UnaryKind};
use arenite::ops::binary::SpecialBinaryOp;

/// The results of an attention, by position.
const PRESENT_KEY: usize = 1;
const PRESENT_VALUE: usize = 2;
const SCORES: usize = 3;

impl<'a> Importer<'_, 'a> {
    pub(super) fn attention(&mut self, view: View<'_, 'a>) -> Result<()> {
        let (q, flat) = self.split_heads(view, 0, "q_num_heads")?;
        let (mut k, _) = self.split_heads(view, 1, "kv_num_heads")?;
        let (mut v, _) = self.split_heads(view, 2, "kv_num_heads")?;
        if view.optional(6).is_some() {
            return Err(
                Error::unsupported("lengths of the keys that are computed (nonpad_kv_seqlen)")
                    .help("pass the keys that a query sees as attn_mask"),
            );
        }
        let past = match (self.optional(view, 4)?, self.optional(view, 5)?) {
            (None, None) => 0,
            (Some(key), Some(value)) => {
                let past = self.shape(&key).get(2).copied().unwrap_or(0);
                k = self.concat(&[key, k], 2)?;
                v = self.concat(&[value, v], 2)?;
                past
            }
            _ => return Err(Error::input("a past of keys alone, or of values alone").expected("both or none")),
        };
        let (q_shape, k_shape, v_shape) = (self.shape(&q), self.shape(&k), self.shape(&v));
        let (heads, queries, size) = (q_shape[1], q_shape[2], q_shape[3]);
        let (groups, keys) = (k_shape[1], k_shape[2]);
        let fits = q_shape[0] == k_shape[0] && k_shape[..3] == v_shape[..3] && size == k_shape[3];
        if !fits || groups == 0 || !heads.is_multiple_of(groups) {
            return Err(Error::input(format!(
                "queries {q_shape:?}, keys {k_shape:?} and values {v_shape:?} do not fit together"
            ))
            .expected("[batch, heads, length, size] each, and heads of the queries that those of the keys divide"));
        }
        self.bind(view, PRESENT_KEY, k.clone())?;
        self.bind(view, PRESENT_VALUE, v.clone())?;
        if heads != groups {
            // Heads of queries share one of the keys, neighbours together.
            let shared: Vec<usize> = (0..heads).map(|head| head / (heads / groups)).collect();
            (k, v) = (self.chosen(&k, 1, &shared)?, self.chosen(&v, 1, &shared)?);
        }
        let scale = view.float("scale", 1.0 / (size.max(1) as f32).sqrt())?;
        let q = self.with(BinaryOp::Mul, &q, scale)?;
        let mut scores = self.products(&q, &k)?;
        let (cap, wanted) = (view.float("softcap", 0.0)?, view.int("qk_matmul_output_mode", 0)?);
        let plain = scores.clone();
        if cap > 0.0 {
            scores = self.with(BinaryOp::Div, &scores, cap)?;
            scores = self.unary(UnaryKind::TANH, &scores)?;
            scores = self.with(BinaryOp::Mul, &scores, cap)?;
        }
        let bias = self.seen(view, queries, keys, past)?;
        if let Some(bias) = &bias {
            scores = self.binary(BinaryOp::Add, &scores, bias)?;
        }
        let biased = scores.clone();
        let mut weights = self.softmax_along(&scores, -1, true, false)?;
        if let Some(bias) = &bias {
            weights = self.without_blind_rows(&weights, bias)?;
        }
        let y = self.multiplied(&weights, &v)?;
        if view.output(SCORES).is_some() {
            let shown = match wanted {
                0 if cap == 0.0 => plain,
                2 => biased,
                3 => weights,
                mode => {
                    return Err(Error::unsupported(format!(
                        "qk_matmul_output_mode {mode} with softcap {cap}"
                    )));
                }
            };
            self.bind(view, SCORES, shown)?;
        }
        let y = if flat {
            let y = self.transpose(&y, &[0, 2, 1, 3])?;
            self.reshape(&y, &[q_shape[0], queries, heads * v_shape[3]])?
        } else {
            y
        };
        self.bind(view, 0, y)
    }

    /// `[batch, heads, length, size]` of an operand, and whether its heads stood side by side.
    fn split_heads(&mut self, view: View<'_, 'a>, position: usize, attribute: &str) -> Result<(Value, bool)> {
        let x = self.operand(view, position)?;
        match *self.shape(&x) {
            [_, _, _, _] => Ok((x, false)),
            [batch, length, width] => {
                let heads = usize::try_from(view.int(attribute, 0)?)
                    .ok()
                    .filter(|&n| n > 0 && width.is_multiple_of(n));
                let heads = heads.ok_or_else(|| Error::input(format!("{attribute} for rows of {width} elements")))?;
                let x = self.reshape(&x, &[batch, length, heads, width / heads])?;
                Ok((self.transpose(&x, &[0, 2, 1, 3])?, true))
            }
            ref shape => Err(Error::input(format!("an operand of shape {shape:?}")).expected("three or four axes")),
        }
    }

    /// Returns the bias of the scores: 0 where a query sees a key, negative infinity elsewhere, or the mask's values. `None` where every query sees all.
    fn seen(&mut self, view: View<'_, 'a>, queries: usize, keys: usize, past: usize) -> Result<Option<Value>> {
        let mut bias = match self.optional(view, 3)? {
            None => None,
            Some(mask) => {
                let bias = match self.elem(&mask) {
                    Elem::BOOL => {
                        let [zero, hidden] = [0.0, f32::NEG_INFINITY].map(|n| Array::scalar(n).into());
                        self.choose(&mask, &zero, &hidden)?
                    }
                    Elem::FLOAT => mask,
                    elem => return Err(unsupported(elem, "a mask")),
                };
                let mut shape = self.shape(&bias);
                let own = shape.pop().filter(|&own| own <= keys);
                let own = own.ok_or_else(|| Error::input(format!("a mask of more than {keys} keys")))?;
                if own == 1 && keys > 1 {
                    return Err(Error::unsupported(format!("a mask of one key for {keys} keys"))
                        .help("state it for every key: some spread it and others hide the rest"));
                }
                if own < keys {
                    shape.push(keys - own);
                    let hidden = Array::filled(&self.budget, &shape, f32::NEG_INFINITY)?.into();
                    let axis = shape.len() - 1;
                    Some(self.concat(&[bias, hidden], axis)?)
                } else {
                    Some(bias)
                }
            }
        };
        let causal = view.flag("is_causal", false)?;
        let [left, right] = [view.int("left_window_size", -1)?, view.int("right_window_size", -1)?];
        if causal || left >= 0 || right >= 0 {
            paid(&self.budget, Elem::FLOAT, &[queries, keys])?;
            let visible = |at: usize| {
                let ahead = (at % keys) as i64 - (at / keys + past) as i64;
                (!causal || ahead <= 0) && (left < 0 || -ahead <= left) && (right < 0 || ahead <= right)
            };
            let each = (0..queries * keys).map(|at| if visible(at) { 0.0 } else { f32::NEG_INFINITY });
            let order: Value = Array::floats(&[queries, keys], each.collect()).into();
            bias = Some(match bias {
                None => order,
                Some(bias) => self.binary(BinaryOp::Add, &bias, &order)?,
            });
        }
        Ok(bias)
    }

    /// The weights of queries that see a key; 0 of the others.
    fn without_blind_rows(&mut self, weights: &Value, bias: &Value) -> Result<Value> {
        let shape = self.shape(bias);
        let Some(last) = shape.len().checked_sub(1) else {
            return Ok(weights.clone());
        };
        let most = self.reduce(ReduceKind::Max, bias, &[last], true)?;
        let hidden = Array::scalar(f32::NEG_INFINITY).into();
        let blind = self.compare(SpecialBinaryOp::Equal, &most, &hidden)?;
        if let Value::Array(blind) = &blind
            && !blind.whole("rows")?.contains(&1)
        {
            return Ok(weights.clone());
        }
        self.choose(&blind, &Array::scalar(0.0).into(), weights)
    }

    /// Pairs of elements turned by the angles of their positions.
    pub(super) fn rotary_embedding(&mut self, view: View<'_, 'a>) -> Result<()> {
        let x = self.operand(view, 0)?;
        let given = self.shape(&x);
        // [batch, length, heads, size]
        let (x, shape) = match *given {
            [batch, heads, length, size] => (self.transpose(&x, &[0, 2, 1, 3])?, [batch, length, heads, size]),
            [batch, length, width] => {
                let heads = usize::try_from(view.int("num_heads", 0)?)
                    .ok()
                    .filter(|&n| n > 0 && width.is_multiple_of(n));
                let heads = heads.ok_or_else(|| Error::input(format!("num_heads for rows of {width} elements")))?;
                let shape = [batch, length, heads, width / heads];
                (self.reshape(&x, &shape)?, shape)
            }
            _ => return Err(Error::input(format!("an operand of shape {given:?}")).expected("three or four axes")),
        };
        let [batch, length, heads, size] = shape;
        let turned = match usize::try_from(view.int("rotary_embedding_dim", 0)?) {
            Ok(0) => size,
            Ok(turned) if turned <= size => turned,
            _ => return Err(Error::input(format!("rotary_embedding_dim of {size} elements"))),
        };
        let half = turned / 2;
        if half == 0 || turned % 2 != 0 {
            return Err(Error::input(format!("{turned} elements to turn in pairs")).expected("an even number"));
        }
        let mut waves = Vec::new();
        for position in [1, 2] {
            let table = self.operand(view, position)?;
            let table = match self.optional(view, 3)? {
                None => table,
                Some(Value::Array(places)) => {
                    let rows = self.shape(&table).first().copied().unwrap_or(0);
                    let places: Vec<usize> = (places.whole("positions")?.iter())
                        .map(|&place| super::movement::axis_of(place, rows))
                        .collect::<Result<_>>()?;
                    self.chosen(&table, 0, &places)?
                }
                Some(places) => self.gather_rows(&table, 0, &places, &[batch, length, half])?,
            };
            let found = self.shape(&table);
            if found.last() != Some(&half) || found.iter().product::<usize>() != batch * length * half {
                return Err(
                    Error::input(format!("angles of shape {found:?}")).expected(format!("{:?}", [batch, length, half]))
                );
            }
            waves.push(self.reshape(&table, &[batch, length, 1, half])?);
        }
        let interleaved = view.flag("interleaved", false)?;
        let pair = |net: &mut Self, second: usize| {
            let (first, step) = if interleaved { (second, 2) } else { (second * half, 1) };
            net.slice(&x, &[0, 0, 0, first], &[1, 1, 1, step], &[batch, length, heads, half])
        };
        let (a, b) = (pair(self, 0)?, pair(self, 1)?);
        let mut rotated = Vec::new();
        for (op, first, second) in [(BinaryOp::Sub, 0, 1), (BinaryOp::Add, 1, 0)] {
            let left = self.binary(BinaryOp::Mul, &waves[first], &a)?;
            let right = self.binary(BinaryOp::Mul, &waves[second], &b)?;
            rotated.push(self.binary(op, &left, &right)?);
        }
        let mut y = if interleaved {
            let apart = [batch, length, heads, half, 1];
            let parts = [self.reshape(&rotated[0], &apart)?, self.reshape(&rotated[1], &apart)?];
            let pairs = self.concat(&parts, 4)?;
            self.reshape(&pairs, &[batch, length, heads, turned])?
        } else {
            self.concat(&rotated, 3)?
        };
        if turned < size {
            let rest = self.part(&x, 3, turned, size - turned)?;
            y = self.concat(&[y, rest], 3)?;
        }
        let y = match given.len() {
            4 => self.transpose(&y, &[0, 2, 1, 3])?,
            _ => self.reshape(&y, &given)?,
        };
        self.bind(view, 0, y)
    }
}
