//! Spectra: Fourier transforms, their frequencies, and windows.

use crate::op::row::Op;

pub mod core;
pub mod frequencies;
pub mod short_time;
pub mod transforms;
pub mod windows;

/// Whether a row takes complex numbers as they are.
pub fn takes_complex(op: &'static Op) -> bool {
    let shifts = [&frequencies::FFTSHIFT, &frequencies::IFFTSHIFT];
    let all = [core::ROWS, transforms::ROWS, short_time::ROWS, &shifts];
    all.iter().any(|rows| rows.iter().any(|row| op.is(row)))
}
