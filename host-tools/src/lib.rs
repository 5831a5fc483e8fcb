//! Host tools of Arenite.
