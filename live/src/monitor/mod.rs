//! Who reads the memory of devices.
//!
//! Every kind of device has a [`Source`]: it is asked for what some processes use, and gives a [`Reading`] in which every
//! figure may be missing (unknown is never zero) and says where it is from. Processes come and go while a source looks, and
//! the kernel's files change between two lines; what has vanished is unknown, never an error.
//!
//! | device | source |
//! |---|---|
//! | NVIDIA | [`nvidia`]: NVML, loaded at run time |
//! | AMD | [`amd`]: files of the kernel's driver |
//! | Apple | [`apple`]: the system's own tools |
//! | processor and its memory, on Linux | [`host`]: `/proc` and control groups |
//!
//! [`Monitors`] owns a thread a device, so that a tool that hangs keeps nobody but its own device waiting, and says what was
//! read at the scheduler's desk. [`devices`] finds out what a machine has.

pub mod amd;
pub mod apple;
mod cgroup;
pub mod devices;
pub mod host;
mod kin;
pub mod nvidia;
mod reading;
mod steady;
mod watch;

pub use reading::{Figure, Process, Reading, Source, Unreadable};
pub use watch::{Health, Listener, Monitors, Watched};
