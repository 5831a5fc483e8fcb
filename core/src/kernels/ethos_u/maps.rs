//! Feature maps of an Ethos-U: the registers that describe one, and how far it reaches.
//!
//! Registers of 16 bits are kept as 32, addresses of 48 as 64: all ones stand for what no command has set. That is larger than any memory, so that a map whose
//! base or extent is not set reaches outside of everything.

use super::why::Why;

/// Value of a register that no command has set.
pub(super) const UNSET: u32 = u32::MAX;
/// Value of an address that no command has set.
pub(super) const NOWHERE: u64 = u64::MAX;

/// Channels of a brick of the layout NHCWB16.
const BRICK: u64 = 16;

/// Rows, columns and channels, none of which is 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub(super) height: u64,
    pub(super) width: u64,
    pub(super) depth: u64,
}

/// The registers of a feature map.
#[derive(Debug, Clone, Copy)]
pub(super) struct Map {
    /// Start addresses of its four tiles: above and left, above and right, below and left, below and right.
    base: [u64; 4],
    /// Bytes between columns, rows and bricks of channels.
    stride: [u64; 3],
    /// Columns of the tiles on the left, rows of the upper one on the left and of that on the right; less one.
    tiles: [u32; 3],
    /// Element and layout.
    pub(super) precision: u32,
    /// Region of its addresses.
    pub(super) region: u32,
    /// Channels, less one.
    pub(super) depth: u32,
}

impl Map {
    pub(super) const NOTHING: Self = Self {
        base: [NOWHERE; 4],
        stride: [NOWHERE; 3],
        tiles: [UNSET; 3],
        precision: UNSET,
        region: UNSET,
        depth: UNSET,
    };

    /// Sets the address register of this number in the group of a map: 0 to 6.
    pub(super) fn set_address(&mut self, register: u16, address: u64) {
        let mut registers = self.base.iter_mut().chain(&mut self.stride);
        if let Some(place) = registers.nth(register.into()) {
            *place = address;
        }
    }

    /// Sets the register of the tiles of this number: 0 to 2.
    pub(super) fn set_tile(&mut self, register: u16, value: u32) {
        if let Some(place) = self.tiles.get_mut(usize::from(register)) {
            *place = value;
        }
    }

    /// One past the last byte that a map of this extent reaches, from the start of its region. The number of the element's size begins at bit `size` of the
    /// precision, in which `known` are the bits that a register of its kind has.
    pub(super) fn end(&self, extent: Extent, size: u32, known: u32) -> Result<u64, Why> {
        let element = match (self.precision & !known, (self.precision >> size) & 3) {
            (0, size @ 0..=2) => 1 << size,
            _ => return Err(Why::Parameter),
        };
        let [width_0, height_0, height_1] = self.tiles.map(|less| u64::from(less) + 1);
        if self.tiles.contains(&UNSET) {
            return Err(Why::Parameter);
        }
        let pixel = self.pixel(extent.depth, element);
        let [column, row, _] = self.stride;
        let column = if self.is_bricks() {
            column.max(BRICK * element)
        } else {
            column
        };
        let (left, right) = (extent.width.min(width_0), extent.width.saturating_sub(width_0));
        let beside = |rows: u64, upper: u64| [rows.min(upper), rows.saturating_sub(upper)];
        let [above_left, below_left] = beside(extent.height, height_0);
        let [above_right, below_right] = beside(extent.height, height_1);
        let tiles = [
            (above_left, left),
            (above_right, right),
            (below_left, left),
            (below_right, right),
        ];
        let mut end = 0;
        for (&base, (rows, columns)) in self.base.iter().zip(tiles) {
            if rows > 0 && columns > 0 {
                let last_row = row.saturating_mul(rows - 1);
                let last_column = column.saturating_mul(columns - 1);
                let here = base.saturating_add(last_row).saturating_add(last_column);
                end = end.max(here.saturating_add(pixel));
            }
        }
        Ok(end)
    }

    fn is_bricks(&self) -> bool {
        self.precision & 1 << 6 != 0
    }

    /// Bytes from the first channel of a pixel to the end of its last one. Bricks are read and written as a whole.
    fn pixel(&self, depth: u64, element: u64) -> u64 {
        let [.., brick] = self.stride;
        let last = depth.saturating_sub(1);
        if self.is_bricks() {
            brick.saturating_mul(last / BRICK).saturating_add(BRICK * element)
        } else {
            depth.saturating_mul(element)
        }
    }
}
