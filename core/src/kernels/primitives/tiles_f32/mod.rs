//! Tiles of sums of f32 products, that training is made of: windows with filters, rows with factors, and outer products of pixels.
//!
//! Every sum has one order on every core, and is rounded after every product.

#[cfg(kernel_isa = "fpu")]
mod fpu;

use crate::cells::Src;

/// Filters, output channels or input channels of a tile.
pub(in crate::kernels) const TILE: usize = 4;

/// Neighbours that are summed at a time by [`Rows::sums`].
pub(in crate::kernels) const LANES: usize = 8;

/// Rows of a window, and those of filters in OHWI. Strides count elements.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Windows<'a> {
    /// From the window's first element on.
    pub(in crate::kernels) x: Src<'a, f32>,
    /// From the same row's first element of the first filter on.
    pub(in crate::kernels) w: Src<'a, f32>,
    /// Between rows of the window.
    pub(in crate::kernels) x_stride: usize,
    /// Between rows of a filter.
    pub(in crate::kernels) w_stride: usize,
    /// Between filters.
    pub(in crate::kernels) filter: usize,
    pub(in crate::kernels) rows: usize,
    /// Of a row.
    pub(in crate::kernels) len: usize,
}

impl Windows<'_> {
    /// The sums of the products with `N` filters. `None` where an operand is too short.
    ///
    /// A sum is four sums of every fourth product of each row, added one behind the other; what a row has over is added to the first one.
    #[inline(always)]
    pub(in crate::kernels) fn dots<const N: usize>(&self) -> Option<[f32; N]> {
        if self.rows == 0 || self.len == 0 {
            return Some([0.0; N]);
        }
        let last = self.rows.wrapping_sub(1);
        let end = |stride: usize, start: usize| last.checked_mul(stride)?.checked_add(self.len)?.checked_add(start);
        if end(self.x_stride, 0)? > self.x.len()
            || end(self.w_stride, self.filter.checked_mul(N.wrapping_sub(1))?)? > self.w.len()
        {
            return None;
        }
        #[cfg(kernel_isa = "fpu")]
        if N == TILE {
            let mut sums = [0.0; N];
            let bytes = |elements: usize| elements.wrapping_mul(size_of::<f32>());
            let args = fpu::Dots {
                x: self.x.as_ptr(),
                w: self.w.as_ptr(),
                sums: sums.as_mut_ptr(),
                filter: bytes(self.filter),
                len: self.len,
                rows: self.rows,
                x_skip: bytes(self.x_stride.wrapping_sub(self.len)),
                w_skip: bytes(self.w_stride.wrapping_sub(self.len)),
            };
            // SAFETY: the operands have all rows of the window and of the four filters, as just checked; four sums are written.
            unsafe { fpu::dots(&args) };
            return Some(sums);
        }
        let mut sums = [[0.0f32; 4]; N];
        for row in 0..self.rows {
            let x = self.x.slice(row.wrapping_mul(self.x_stride), self.len)?;
            let w = row.wrapping_mul(self.w_stride);
            for (filter, sums) in sums.iter_mut().enumerate() {
                let w = self
                    .w
                    .slice(w.wrapping_add(filter.wrapping_mul(self.filter)), self.len)?;
                products(x, w, sums);
            }
        }
        Some(sums.map(|[a, b, c, d]| a + b + c + d))
    }
}

/// Factors, and a row for each of them.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Rows<'a> {
    pub(in crate::kernels) factors: Src<'a, f32>,
    /// From the first row's first element on.
    pub(in crate::kernels) rows: Src<'a, f32>,
    /// Elements between rows.
    pub(in crate::kernels) stride: usize,
}

impl Rows<'_> {
    /// Adds to `sums` the sum of `N` neighbours of all rows, each times its factor. `None` where the rows are too short.
    #[inline(always)]
    pub(in crate::kernels) fn add<const N: usize>(&self, sums: &mut [f32; N]) -> Option<()> {
        let count = self.factors.len();
        let Some(last) = count.checked_sub(1) else {
            return Some(());
        };
        if last.checked_mul(self.stride)?.checked_add(N)? > self.rows.len() {
            return None;
        }
        #[cfg(kernel_isa = "fpu")]
        if N == LANES {
            let args = fpu::Weighted {
                factors: self.factors.as_ptr(),
                rows: self.rows.as_ptr(),
                count,
                skip: self.stride.wrapping_sub(N).wrapping_mul(size_of::<f32>()),
                sums: sums.as_mut_ptr(),
            };
            // SAFETY: there are `count` factors and as many rows of eight, as just checked, and eight sums.
            unsafe { fpu::weighted(&args) };
            return Some(());
        }
        let (mut row, mut at) = ([0.0f32; N], 0usize);
        for factor in self.factors.iter() {
            add_products(&mut row, factor, self.rows.slice(at, N)?);
            at = at.wrapping_add(self.stride);
        }
        add(sums, row);
        Some(())
    }
}

/// Pixels of two maps that meet. Strides count elements.
#[derive(Clone, Copy)]
pub(in crate::kernels) struct Pixels<'a> {
    /// From the first pixel's first channel on.
    pub(in crate::kernels) dy: Src<'a, f32>,
    /// From the first pixel's first channel on.
    pub(in crate::kernels) x: Src<'a, f32>,
    pub(in crate::kernels) rows: usize,
    pub(in crate::kernels) columns: usize,
    /// Between rows, then between columns, of `dy`.
    pub(in crate::kernels) dy_stride: [usize; 2],
    /// Between rows, then between columns, of `x`.
    pub(in crate::kernels) x_stride: [usize; 2],
}

impl Pixels<'_> {
    /// Adds to `sums` the outer products of `O` channels of `dy` with `C` channels of `x`. `None` where an operand is too short.
    ///
    /// Each row of pixels is a sum of its own, so that none has more terms than a row.
    #[inline(always)]
    pub(in crate::kernels) fn add<const O: usize, const C: usize>(&self, sums: &mut [[f32; C]; O]) -> Option<()> {
        if self.rows == 0 || self.columns == 0 {
            return Some(());
        }
        let last = [self.rows.wrapping_sub(1), self.columns.wrapping_sub(1)];
        let end = |[row, column]: [usize; 2], channels: usize| {
            let row = last[0].checked_mul(row)?;
            last[1].checked_mul(column)?.checked_add(row)?.checked_add(channels)
        };
        if end(self.dy_stride, O)? > self.dy.len() || end(self.x_stride, C)? > self.x.len() {
            return None;
        }
        #[cfg(kernel_isa = "fpu")]
        if O == TILE && C == TILE {
            let bytes = |elements: usize| elements.wrapping_mul(size_of::<f32>());
            let skip = |[row, column]: [usize; 2]| bytes(row.wrapping_sub(column.wrapping_mul(self.columns)));
            let args = fpu::Outer {
                dy: self.dy.as_ptr(),
                x: self.x.as_ptr(),
                sums: sums.as_mut_ptr().cast(),
                rows: self.rows,
                columns: self.columns,
                dy_column: bytes(self.dy_stride[1]),
                x_column: bytes(self.x_stride[1]),
                dy_skip: skip(self.dy_stride),
                x_skip: skip(self.x_stride),
            };
            // SAFETY: both maps have four channels of every pixel, as just checked; there are sixteen sums.
            unsafe { fpu::outer(&args) };
            return Some(());
        }
        for row in 0..self.rows {
            let mut of_row = [[0.0f32; C]; O];
            let mut dy = row.wrapping_mul(self.dy_stride[0]);
            let mut x = row.wrapping_mul(self.x_stride[0]);
            for _ in 0..self.columns {
                let (factors, row) = (self.dy.slice(dy, O)?, self.x.slice(x, C)?);
                for (sums, factor) in of_row.iter_mut().zip(factors.iter()) {
                    add_products(sums, factor, row);
                }
                dy = dy.wrapping_add(self.dy_stride[1]);
                x = x.wrapping_add(self.x_stride[1]);
            }
            sums.iter_mut().zip(of_row).for_each(|(sums, row)| add(sums, row));
        }
        Some(())
    }
}

/// Adds every fourth product to each of the sums, and what is left over to the first one.
#[inline(always)]
fn products(x: Src<'_, f32>, w: Src<'_, f32>, sums: &mut [f32; 4]) {
    let ((blocks_x, rest_x), (blocks_w, rest_w)) = (x.chunks::<4>(), w.chunks::<4>());
    let mut block = 0usize;
    while let (Some(x), Some(w)) = (blocks_x.get(block), blocks_w.get(block)) {
        sums.iter_mut()
            .zip(x.iter().zip(w))
            .for_each(|(sum, (x, w))| *sum += x * w);
        block = block.wrapping_add(1);
    }
    for (x, w) in rest_x.iter().zip(rest_w.iter()) {
        sums[0] += x * w;
    }
}

/// Adds a factor times as many numbers.
#[inline(always)]
fn add_products<const N: usize>(sums: &mut [f32; N], factor: f32, numbers: Src<'_, f32>) {
    sums.iter_mut()
        .zip(numbers.iter())
        .for_each(|(sum, x)| *sum += factor * x);
}

/// Adds one by one.
#[inline(always)]
fn add<const N: usize>(sums: &mut [f32; N], row: [f32; N]) {
    sums.iter_mut().zip(row).for_each(|(sum, row)| *sum += row);
}
