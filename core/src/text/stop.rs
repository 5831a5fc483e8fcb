//! A text that ends what is generated.

/// Looks for a text among bytes that come one by one; bytes that may be its beginning are held back until it is known.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Stop<'t> {
    text: &'t [u8],
    /// Bytes at the text's beginning that came last.
    held: usize,
}

impl<'t> Stop<'t> {
    /// Looks for `text`; an empty one is never found.
    pub fn at(text: &'t [u8]) -> Self {
        Self { text, held: 0 }
    }

    /// Takes bytes, and gives those that are before the text to `give`. True where the text has come: it is not given, nor is what follows.
    pub fn push(&mut self, bytes: &[u8], give: &mut dyn FnMut(&[u8])) -> bool {
        if self.text.is_empty() {
            give(bytes);
            return false;
        }
        for byte in bytes {
            loop {
                if self.text.get(self.held) == Some(byte) {
                    self.held += 1;
                    break;
                }
                if self.held == 0 {
                    give(core::slice::from_ref(byte));
                    break;
                }
                // The longest beginning that the held bytes end with, and fewer than they are.
                let held = self.text.get(..self.held).unwrap_or_default();
                let shorter = (0..self.held)
                    .rev()
                    .find(|&len| held.ends_with(held.get(..len).unwrap_or_default()));
                let kept = shorter.unwrap_or(0);
                give(held.get(..self.held - kept).unwrap_or_default());
                self.held = kept;
            }
            if self.held == self.text.len() {
                return true;
            }
        }
        false
    }

    /// Gives what is held back: nothing more comes.
    pub fn finish(&mut self, give: &mut dyn FnMut(&[u8])) {
        if self.held < self.text.len() {
            give(self.text.get(..self.held).unwrap_or_default());
        }
        self.held = 0;
    }
}
