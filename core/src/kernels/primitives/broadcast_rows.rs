//! Two operands that meet line by line, with broadcasting, at addresses that are checked once and not for each element.

use crate::cells::{Dst, Element, Src};
use crate::ops::elementwise::{Loop, MAX_LOOPS, operand_len, output_len};

/// Elements that meet along the innermost axis; the result's are neighbours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<A, B, Y> {
    /// `count` elements.
    pub(in crate::kernels) output: *mut Y,
    /// As many, with the steps between them.
    pub(in crate::kernels) a: *const A,
    /// Likewise.
    pub(in crate::kernels) b: *const B,
    pub(in crate::kernels) count: usize,
    /// Elements between neighbours of `a` and of `b`.
    pub(in crate::kernels) steps: [usize; 2],
}

/// Calls `f` with the lines of two operands, outermost axis first. `None` where an operand is too short.
#[inline(always)]
pub(crate) fn walk<A: Element, B: Element, Y: Element>(
    loops: &[Loop],
    output: Dst<'_, Y>,
    a: Src<'_, A>,
    b: Src<'_, B>,
    mut f: impl FnMut(Line<A, B, Y>),
) -> Option<()> {
    let lens = [
        output_len(loops)?,
        operand_len(loops, |l| l.a)?,
        operand_len(loops, |l| l.b)?,
    ];
    let [len, len_a, len_b] = lens.map(|n| n as usize);
    if len > output.cells().len() || len_a > a.len() || len_b > b.len() {
        return None;
    }
    const ONE: Loop = Loop { count: 1, a: 0, b: 0 };
    let (outer, middle, inner) = match *loops {
        [ref outer @ .., middle, inner] => (outer, middle, inner),
        [inner] => (&[][..], ONE, inner),
        [] => (&[][..], ONE, ONE),
    };
    let steps = |l: &Loop| [l.a, l.b].map(|n| n as usize);
    let (count, ahead) = (inner.count as usize, steps(&middle));
    let (mut y, mut a, mut b) = (output.as_mut_ptr(), a.as_ptr(), b.as_ptr());
    let mut index = [0_u32; MAX_LOOPS];
    loop {
        let mut line = Line {
            output: y,
            a,
            b,
            count,
            steps: steps(&inner),
        };
        for _ in 0..middle.count {
            f(line);
            line.output = line.output.wrapping_add(count);
            line.a = line.a.wrapping_add(ahead[0]);
            line.b = line.b.wrapping_add(ahead[1]);
        }
        y = line.output;
        // The outer axes advance like an odometer.
        let mut done = true;
        for (l, n) in outer.iter().zip(index.iter_mut()).rev() {
            let [step_a, step_b] = steps(l);
            *n += 1;
            a = a.wrapping_add(step_a);
            b = b.wrapping_add(step_b);
            if *n < l.count {
                done = false;
                break;
            }
            a = a.wrapping_sub(step_a.wrapping_mul(l.count as usize));
            b = b.wrapping_sub(step_b.wrapping_mul(l.count as usize));
            *n = 0;
        }
        if done {
            return Some(());
        }
    }
}

impl<A: Element, B: Element, Y: Element> Line<A, B, Y> {
    /// Writes what `f` makes of each pair.
    #[inline(always)]
    pub(crate) fn each(&self, f: impl Fn(A, B) -> Y) {
        let [step_a, step_b] = self.steps;
        self.with_steps(step_a, step_b, f);
    }

    /// The same with a loop of its own where neighbours meet neighbours.
    #[inline(always)]
    pub(crate) fn neighbours(&self, f: impl Fn(A, B) -> Y) {
        if self.steps == [1, 1] {
            self.with_steps(1, 1, f);
        } else {
            self.each(f);
        }
    }

    /// The same with a loop for each pair of steps that tensors of one shape, and a channel's or a pixel's factors, have.
    #[inline(always)]
    pub(crate) fn straight(&self, f: impl Fn(A, B) -> Y) {
        match self.steps {
            [1, 1] => self.with_steps(1, 1, f),
            [1, 0] => self.with_steps(1, 0, f),
            [step_a, step_b] => self.with_steps(step_a, step_b, f),
        }
    }

    #[inline(always)]
    fn with_steps(&self, step_a: usize, step_b: usize, f: impl Fn(A, B) -> Y) {
        let (mut y, mut a, mut b) = (self.output, self.a, self.b);
        for _ in 0..self.count {
            // SAFETY: `self.count` elements remain of each; `walk` makes lines inside the operands alone.
            unsafe { y.write(f(a.read(), b.read())) };
            y = y.wrapping_add(1);
            a = a.wrapping_add(step_a);
            b = b.wrapping_add(step_b);
        }
    }
}

impl<X: Element, Y: Element> Line<X, X, Y> {
    /// The operands in the other order.
    #[inline(always)]
    pub(crate) fn swapped(self) -> Self {
        let [step_a, step_b] = self.steps;
        Self {
            a: self.b,
            b: self.a,
            steps: [step_b, step_a],
            ..self
        }
    }
}
