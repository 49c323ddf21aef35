//! The load, and the ways in which it ends.

use std::time::{Duration, Instant};

use super::{
    HELD,
    arguments::{Arguments, LoadEnds, LoadSays},
    mischief::Itself,
};
use crate::fake::{FakeServer, Process};

/// Between two signs of progress.
const SIGNS: Duration = Duration::from_millis(50);

/// Loads; whether the process goes on.
pub async fn load(arguments: &Arguments, itself: &Itself, server: &FakeServer) -> bool {
    let model = &arguments.server.model;
    itself.log(&format!("srv    load_model: loading model '{model}'"));
    take_time(arguments, itself).await;
    match arguments.load_ends {
        LoadEnds::Ready => {}
        LoadEnds::OutOfMemoryHealthy => {
            itself.log("ggml_metal_synchronize: error: command buffer 0 failed with status 5");
            itself.log("error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)");
        }
        LoadEnds::OutOfMemory => {
            itself.log("ggml_backend_cuda_buffer_type_alloc_buffer: allocating 8192.00 MiB on device 0: cudaMalloc failed: out of memory");
            itself.log("llama_model_load: error loading model: unable to allocate CUDA0 buffer");
            itself.log("srv  llama_server: exiting due to model loading error");
            return false;
        }
        LoadEnds::Stalls => std::future::pending().await,
        LoadEnds::Dies(death) => itself.die(death),
        // It did not come so far.
        LoadEnds::NotBound => return false,
    }
    let context = arguments.server.context / arguments.server.slots.max(1);
    let slots = arguments.server.slots;
    itself.log(&format!(
        "srv    load_model: initializing, n_slots = {slots}, n_ctx_slot = {context}, kv_unified = 'false'"
    ));
    server.ready();
    itself.log("srv  llama_server: model loaded");
    itself.log(&format!("srv  llama_server: listening on http://{}", server.address()));
    true
}

async fn take_time(arguments: &Arguments, itself: &Itself) {
    let (started, whole) = (Instant::now(), arguments.load);
    let told = std::env::var_os(HELD).is_some();
    let mut taken: Vec<Vec<u8>> = Vec::new();
    loop {
        let passed = started.elapsed();
        let Some(left) = whole.checked_sub(passed).filter(|left| !left.is_zero()) else { return };
        tokio::time::sleep(left.min(SIGNS)).await;
        match arguments.load_says {
            LoadSays::Progress if told => itself.state(started.elapsed().as_secs_f64() / whole.as_secs_f64()),
            LoadSays::Progress => itself.log("."),
            LoadSays::Nothing => {}
            LoadSays::Memory => taken.push(vec![1; 1 << 20]),
        }
    }
}
