//! Where bytes come from.

/// Where a model lies in pieces.
pub trait Source {
    /// Error of the source.
    type Error;

    /// Reads from this offset on.
    ///
    /// # Errors
    /// Those of the device, and where there are not as many bytes.
    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), Self::Error>;

    /// Reads while something else is done: a bus with a DMA starts the transfer, does the work, and waits for the transfer's end. The work is done once, also
    /// where the transfer fails. Where nothing is known of the bus, one comes behind the other.
    ///
    /// # Errors
    /// As [`Source::read`].
    fn read_beside(&mut self, offset: u32, bytes: &mut [u8], work: &mut dyn FnMut()) -> Result<(), Self::Error> {
        work();
        self.read(offset, bytes)
    }
}

impl<S: Source> Source for &mut S {
    type Error = S::Error;

    fn read(&mut self, offset: u32, bytes: &mut [u8]) -> Result<(), S::Error> {
        S::read(self, offset, bytes)
    }

    fn read_beside(&mut self, offset: u32, bytes: &mut [u8], work: &mut dyn FnMut()) -> Result<(), S::Error> {
        S::read_beside(self, offset, bytes, work)
    }
}
