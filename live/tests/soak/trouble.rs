//! What befalls a daemon: its processes are killed and stopped, operators give orders, configurations change.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use rand::{RngExt, seq::IndexedRandom};
use rand_xoshiro::Xoshiro256PlusPlus as Random;

use crate::{
    configuration::{self, MODELS, MORE, Size},
    daemon::{Daemon, signal},
};

/// Makes trouble until then.
pub async fn make(daemon: Arc<Daemon>, folder: PathBuf, mut random: Random, until: Instant) {
    while Instant::now() < until {
        let children = daemon.children();
        let victim = children.choose(&mut random).copied();
        match random.random_range(0..8) {
            0 => victim.into_iter().for_each(|pid| signal(pid, "-KILL")),
            1 => {
                if let Some(pid) = victim {
                    signal(pid, "-STOP");
                    tokio::time::sleep(Duration::from_millis(random.random_range(50..3000))).await;
                    signal(pid, "-CONT");
                }
            }
            2..4 => {
                let model = MODELS.choose(&mut random).unwrap_or(&"chat");
                let order = ["load", "unload", "reset"].choose(&mut random).unwrap_or(&"load");
                daemon.order(model, order).await;
            }
            4 => {
                configuration::write_wrong(&folder);
                daemon.reload();
            }
            _ => {
                let size = match random.random_range(0..3) {
                    0 => Size::Ample,
                    _ => Size::Beyond(random.random_range(100..600)),
                };
                let more = MORE.get(..random.random_range(0..=MORE.len())).unwrap_or_default();
                configuration::write(&folder, size, more);
                daemon.reload();
            }
        }
        tokio::time::sleep(Duration::from_millis(random.random_range(100..1500))).await;
    }
}
