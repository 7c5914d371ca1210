//! Kernels of the scheduler itself: one that takes time, one that writes to an illegal address.

use super::lane::text;
use super::touch;
use crate::device::cuda::{KernelError, Shape, Stream};
use crate::kernel::cuda::Source;
use std::sync::LazyLock;

/// Keeps a stream busy.
pub fn sleep(stream: &Stream, ns: u64) -> Result<(), KernelError> {
    static SOURCE: LazyLock<Source> =
        LazyLock::new(|| Source::new(include_str!("../../../../kernels/device/sleep.cu")));
    let function = stream.context().kernels().function(&text(&SOURCE), "ts_sleep")?;
    let mut ns = ns;
    let shape = Shape::line(1, 1);
    Ok(touch::launch(stream, function, &shape, &mut [(&raw mut ns).cast()])?)
}

/// A kernel that writes to an unmapped address: the device is lost after it.
pub fn illegal_write(stream: &Stream) -> Result<(), KernelError> {
    static SOURCE: LazyLock<Source> =
        LazyLock::new(|| Source::new(include_str!("../../../../kernels/device/illegal_write.cu")));
    let function = stream.context().kernels().function(&text(&SOURCE), "ts_illegal_write")?;
    let mut nobodys = 1u64 << 60;
    Ok(touch::launch(stream, function, &Shape::line(1, 1), &mut [(&raw mut nobodys).cast()])?)
}
