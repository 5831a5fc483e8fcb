//! How an extent is divided: equally, or by how much each part is to have.

use std::ops::Range;

/// How much each part is to have, beside the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shares(Vec<u64>);

impl Shares {
    /// So many equal parts.
    pub fn equal(count: usize) -> Self {
        Self(vec![1; count])
    }

    /// Two parts, computed by two that take so long for the whole: both are done at one time.
    pub fn of_two([first, second]: [u64; 2]) -> Self {
        Self(vec![second.max(1), first.max(1)])
    }

    /// How many parts.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// `total` in pieces in these shares, as near as whole numbers are: equal ones differ by one at most. A piece may be empty.
    pub fn pieces(&self, total: usize) -> Vec<Range<usize>> {
        let all = self.sum();
        let mut before = 0;
        let mut edges = vec![0];
        for &share in &self.0 {
            before += u128::from(share);
            edges.push((total as u128 * before / all) as usize);
        }
        // The last piece but one takes one more where both are done sooner then.
        for at in 1..self.0.len() {
            let [start, edge, end] = [edges[at - 1], edges[at], edges[at + 1]];
            let [left, right] = [self.0[at - 1], self.0[at]].map(u128::from);
            let takes = |edge: usize| ((edge - start) as u128 * right).max((end - edge) as u128 * left);
            if edge < end && takes(edge + 1) < takes(edge) {
                edges[at] += 1;
            }
        }
        edges.windows(2).map(|pair| pair[0]..pair[1]).collect()
    }

    /// The same of blocks of neighbours that are computed at a time, where whole blocks make no piece much longer: the first of `blocks` of which that holds.
    /// None is empty.
    pub fn pieces_of_blocks(&self, total: usize, blocks: &[usize]) -> Vec<Range<usize>> {
        let least = self.longest(total);
        let good = |&block: &usize| 16 * self.longest(total.div_ceil(block)) * block as u128 <= 17 * least;
        let block = blocks.iter().copied().find(good).unwrap_or(1);
        let edge = |n: usize| (n * block).min(total);
        let pieces = self.pieces(total.div_ceil(block)).into_iter();
        pieces
            .map(|piece| edge(piece.start)..edge(piece.end))
            .filter(|piece| !piece.is_empty())
            .collect()
    }

    /// Returns the time of the longest piece of `total`: comparable with that of another total.
    fn longest(&self, total: usize) -> u128 {
        let pieces = self.pieces(total);
        let takes = pieces.iter().zip(&self.0);
        let takes = takes.map(|(piece, &share)| piece.len() as u128 * self.sum() / u128::from(share));
        takes.max().unwrap_or(0)
    }

    fn sum(&self) -> u128 {
        self.0.iter().copied().map(u128::from).sum::<u128>().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_pieces_differ_by_one_at_most() {
        for total in 0..70 {
            for count in 1..9 {
                let pieces = Shares::equal(count).pieces(total);
                let expected: Vec<_> = (0..count).map(|n| total * n / count..total * (n + 1) / count).collect();
                assert_eq!(pieces, expected, "{total} in {count}");
                assert_eq!(
                    Shares::equal(count).longest(total),
                    (count * total.div_ceil(count)) as u128
                );
            }
        }
    }

    #[test]
    fn unlike_parts_are_done_at_the_same_time() {
        for (takes, total) in [
            ([11, 20], 96),
            ([20, 11], 25),
            ([1, 1000], 5),
            ([1000, 1], 5),
            ([7, 7], 9),
            ([3, 1], 1),
        ] {
            let shares = Shares::of_two(takes);
            let pieces = shares.pieces(total);
            assert_eq!(
                (pieces.len(), pieces[0].start, pieces[0].end, pieces[1].end),
                (2, 0, pieces[1].start, total)
            );
            // No other edge is better.
            let ends = |edge: usize| (edge as u64 * takes[0]).max((total - edge) as u64 * takes[1]);
            let best = (0..=total).map(ends).min().expect("an edge");
            assert_eq!(ends(pieces[0].end), best, "{takes:?} of {total}");
        }
    }
}
