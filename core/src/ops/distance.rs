//! Least distance of a sliding window's output behind its input, in closed form: load asks it of shapes that a file merely declares, so its cost must not grow
//! with them.

use crate::ops::window::{Window2d, three};

/// The most that writing is ahead of reading at the start of a place `at` of an axis: the largest `at * written - max(at * stride - padding, 0) * read`
/// over `0..places`.
pub(crate) fn furthest(places: isize, stride: u8, padding: u8, steps: [isize; 2]) -> isize {
    // In eight bits: cores without a division have a short one to call.
    let inside = isize::from(padding.checked_div(stride).unwrap_or(0));
    furthest_of(places, inside, isize::from(stride), isize::from(padding), steps)
}

/// [`furthest`] for `inside` = `padding / stride`, the last place that may start in the padding.
///
/// It rises up to there, and after the next place changes by the same amount at every place: the largest is one of these two, or the last.
pub(crate) fn furthest_of(
    places: isize,
    inside: isize,
    stride: isize,
    padding: isize,
    [written, read]: [isize; 2],
) -> isize {
    let ahead = |at: isize| {
        let at = at.min(places - 1);
        at * written - (at * stride - padding).max(0) * read
    };
    ahead(inside).max(ahead(inside + 1)).max(ahead(places - 1))
}

impl Window2d {
    /// Least distance of the output below the input (`Kernel::distance`), in bytes, for a kernel that computes pixels in order and, before the last read for a
    /// pixel, has written all earlier pixels and at most `lead` further elements.
    ///
    /// With W(p) the bytes written before the last read for pixel p, and R(p) the first input byte that pixel p or a later one
    /// reads, it is the maximum of W(p) - R(p): exact for this loop order. `element` is the bytes of an element of both.
    ///
    /// The window has been checked: its last row and column start inside the input. So R(p) is where p's own window starts (a later row, or image,
    /// starts no earlier than the last pixel of this one), and W - R is the sum of a part that depends on the row and one that depends on the column.
    pub fn consumed_distance(&self, element: u32, lead: u32) -> i64 {
        // Positions are counted in elements: they fit the address space of a device whose load has checked the window, and any host's.
        let signed = |[a, b, c]: [usize; 3]| [a as isize, b as isize, c as isize];
        let [ih, iw, ic] = signed(three(self.input));
        let [oh, ow, oc] = signed(three(self.output));
        let rows = furthest(oh, self.stride[0], self.padding[0], [ow * oc, iw * ic]);
        let columns = furthest(ow, self.stride[1], self.padding[1], [oc, ic]);
        let grows = (oh * ow * oc - ih * iw * ic).max(0);
        let images = usize::from(self.batch) as isize - 1;
        (rows + columns + lead as isize + images * grows) as i64 * i64::from(element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, pixel by pixel: the first input element that each pixel or a later one reads, from the last pixel back to the first.
    fn walked(window: &Window2d, element: u32, lead: u32) -> i64 {
        let [ih, iw, ic] = window.input.map(i64::from);
        let [oh, ow, oc] = window.output.map(i64::from);
        let [sh, sw] = window.stride.map(i64::from);
        let [top, left] = window.padding.map(i64::from);
        let (mut distance, mut read) = (i64::MIN, i64::MAX);
        for image in (0..i64::from(window.batch)).rev() {
            for y in (0..oh).rev() {
                for x in (0..ow).rev() {
                    let row = image * ih + (y * sh - top).clamp(0, ih);
                    read = read.min((row * iw + (x * sw - left).clamp(0, iw)) * ic);
                    let written = ((image * oh + y) * ow + x) * oc + i64::from(lead);
                    distance = distance.max(written - read);
                }
            }
        }
        distance * i64::from(element)
    }

    /// An extent of the output that passes the check: its last window starts inside the input.
    fn last(input: u16, stride: u8, padding: u8, share: u16) -> u16 {
        let most = (u32::from(input) + u32::from(padding) - 1) / u32::from(stride) + 1;
        (1 + u32::from(share) % most).min(65535) as u16
    }

    fn window(batch: u16, input: [u16; 3], shares: [u16; 3], stride: [u8; 2], padding: [u8; 2]) -> Window2d {
        let output = [0, 1].map(|axis| last(input[axis], stride[axis], padding[axis], shares[axis]));
        Window2d {
            batch,
            input,
            output: [output[0], output[1], shares[2].max(1)],
            // As wide as the padding wants.
            kernel: padding.map(|p| u16::from(p) + 1),
            stride,
            dilation: [1, 1],
            padding,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 16))]

        #[test]
        fn the_closed_form_is_the_walk(
            batch in 1u16..4, rows in 1u16..14, columns in 1u16..17, channels in 1u16..9, shares: [u16; 2], outputs in 1u16..9,
            stride in [1u8..6, 1u8..7], padding in [0u8..7, 0u8..6], lead in 0u32..40, element in prop_oneof![Just(1u32), Just(2), Just(4)],
        ) {
            let window = window(batch, [rows, columns, channels], [shares[0], shares[1], outputs], stride, padding);
            window.check().unwrap();
            prop_assert_eq!(window.consumed_distance(element, lead), walked(&window, element, lead));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]

        /// One long axis, strides and padding up to what the fields hold.
        #[test]
        fn so_it_is_of_extreme_windows(
            batch in 1u16..3, long in 3000u16.., short in 1u16..3, tall: bool, channels in 1u16..4, outputs in 1u16..4, shares: [u16; 2],
            stride in [1u8.., 1u8..], padding: [u8; 2], lead in 0u32..300,
        ) {
            let input = if tall { [long, short, channels] } else { [short, long, channels] };
            let window = window(batch, input, [shares[0], shares[1], outputs], stride, padding);
            window.check().unwrap();
            prop_assert_eq!(window.consumed_distance(2, lead), walked(&window, 2, lead));
        }
    }

    /// The largest tensors that pass the check: nothing overflows where positions are 32 bits.
    #[test]
    fn the_largest_windows_have_a_distance() {
        let whole = |input: [u16; 3], output: [u16; 3], padding: [u8; 2]| Window2d {
            batch: 1,
            input,
            output,
            kernel: padding.map(|p| u16::from(p) + 1),
            stride: [1, 1],
            dilation: [1, 1],
            padding,
        };
        let tall = whole([65535, 1, 16383], [65535, 255, 64], [255, 254]);
        let wide = whole([1, 65535, 16383], [255, 65535, 64], [254, 255]);
        for window in [tall, wide] {
            window.check().unwrap();
            assert!(window.consumed_distance(1, 65535) > 0);
            assert_eq!(window.consumed_distance(4, 0), walked(&window, 4, 0));
        }
    }
}
