//! What every actor uses: asking with a limit, tasks that report their end, restart windows,
//! progress queues.

pub mod ask;
pub mod progress;
pub mod restart;
pub mod slot;
pub mod stop;
pub mod task;
pub mod timer;
