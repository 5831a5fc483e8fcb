//! What the fuzz targets do is `arenite_tests::attacks`, which the test command runs on mutations of the corpus as well.

pub use arenite_tests::attacks::target;
