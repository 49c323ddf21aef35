//! Where a model will run.

use windtunnel_core::Bytes;

/// What computes: the part of llama.cpp that a build uses for its devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// NVIDIA.
    Cuda,
    /// AMD.
    Hip,
    /// Any GPU with a Vulkan driver.
    Vulkan,
    /// Apple.
    Metal,
    /// No device: everything is on the host.
    Cpu,
}

/// Whether the device has memory of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// A card: what stays on the host costs the device nothing.
    Discrete,
    /// Device and host share one memory, and both sides count.
    Unified,
}

/// The device a model will run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Platform {
    /// What computes.
    pub backend: Backend,
    /// Whose memory it is.
    pub memory: Memory,
    /// The largest tensor the device can use, where it has such a limit (Vulkan's `maxStorageBufferRange`: usually
    /// 4 GiB, 128 MiB for the software device). Larger ones stay on the host.
    pub largest_tensor: Option<Bytes>,
}

impl Platform {
    /// A card with memory of its own.
    pub const fn card(backend: Backend) -> Platform {
        Platform { backend, memory: Memory::Discrete, largest_tensor: None }
    }

    /// A device that shares the host's memory.
    pub const fn unified(backend: Backend) -> Platform {
        Platform { backend, memory: Memory::Unified, largest_tensor: None }
    }

    /// No device.
    pub const fn host() -> Platform {
        Platform::unified(Backend::Cpu)
    }

    /// The same, with a limit for tensors.
    pub const fn with_largest_tensor(self, largest: Bytes) -> Platform {
        Platform { largest_tensor: Some(largest), ..self }
    }

    /// What a process takes of the device before it has loaded anything.
    ///
    /// * CUDA: driver context, kernels and library workspaces. 165 MiB is what a process on an RTX 4060 Ti (llama.cpp
    ///   b11060) took beyond its buffers with Qwen3-14B: 9732 MiB in all, 8161 of weights, 1280 of cache, 126 of compute.
    ///   HIP has the same parts and is taken to need as much.
    /// * Vulkan: pipelines and staging buffers, taken to be 64 MiB; the software device shows none of it.
    /// * Metal keeps its pipelines in the process, which counts there as a whole.
    pub(super) fn context(self) -> u64 {
        match self.backend {
            Backend::Cuda | Backend::Hip => 165 << 20,
            Backend::Vulkan if self.largest_tensor.is_some() => 0,
            Backend::Vulkan => 64 << 20,
            Backend::Metal | Backend::Cpu => 0,
        }
    }
}
