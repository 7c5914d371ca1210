//! Spectra: Fourier transforms, their frequencies, and windows.

#[expect(dead_code, reason = "listed among the rows when there are complex dtypes")]
pub mod core;
pub mod frequencies;
#[expect(dead_code, reason = "listed among the rows when there are complex dtypes")]
pub mod short_time;
#[expect(dead_code, reason = "listed among the rows when there are complex dtypes")]
pub mod transforms;
pub mod windows;
