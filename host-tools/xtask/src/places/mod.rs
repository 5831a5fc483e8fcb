//! Archives in the forms that other build systems expect: Zephyr's modules, ESP-IDF's components, Arduino's libraries. The texts are in
//! `firmware/c/places`, what differs by core in [`CORES`]; `cargo xtask dist` writes them.

mod arduino;
mod cores;
mod digit;
mod esp_idf;
mod files;
mod library;
mod zephyr;

pub use cores::{CORES, Core, cmake};
pub(crate) use files::Result;
pub use files::{Files, Libraries};
pub use library::{libraries, library};

/// A build system with a form of its own.
pub struct Place {
    /// Part of the archive's name.
    pub name: &'static str,
    /// The folder in it.
    pub folder: &'static str,
    /// Whether the place takes `.zip` alone.
    pub is_zip: bool,
    /// The files, with the libraries that there are.
    pub files: fn(&Libraries) -> Result<Files>,
}

/// All places.
pub const PLACES: [Place; 3] = [
    Place {
        name: "zephyr",
        folder: "arenite",
        is_zip: false,
        files: zephyr::files,
    },
    Place {
        name: "esp-idf",
        folder: "arenite",
        is_zip: false,
        files: esp_idf::files,
    },
    Place {
        name: "arduino",
        folder: "Arenite",
        is_zip: true,
        files: arduino::files,
    },
];

impl Place {
    /// Name of the archive.
    pub fn archive(&self) -> String {
        let ending = if self.is_zip { "zip" } else { "tgz" };
        format!("arenite-{}-{}.{ending}", self.name, env!("CARGO_PKG_VERSION"))
    }
}
