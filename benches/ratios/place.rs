//! Where host and server run while a latency is measured: on two different processors, on both
//! sides of a ratio.
//!
//! Left alone, the kernel often puts the two ends of a pipe on one processor, and then a direct
//! call costs a third of what it costs otherwise: by luck, run by run. With a proxy in between,
//! awake at the same time, it never does so. So series of one call at a time hold host and server
//! apart; what stands between them is placed by the kernel, and so is everything in the series
//! with many calls in flight. `--no-pin` leaves those of one call to the kernel too.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

static PIN: AtomicBool = AtomicBool::new(true);

/// The calling thread, as the kernel's calls name it.
const THIS_THREAD: Pid = Pid::from_raw(0);

/// Leaves all placing to the kernel from now on.
pub fn leave_to_kernel() {
    PIN.store(false, Ordering::Relaxed);
}

/// Holds the calling thread to the first processor and servers to the last, until dropped.
/// No process should be started meanwhile: it would inherit the thread's place.
#[derive(Debug)]
pub struct Apart(Vec<(Pid, CpuSet)>);

impl Apart {
    /// Holds them, where there are two processors at least.
    pub fn hold(servers: &[Pid]) -> Apart {
        let mut apart = Apart(Vec::new());
        let Ok(usable) = sched_getaffinity(THIS_THREAD) else { return apart };
        let all: Vec<usize> =
            (0..CpuSet::count()).filter(|cpu| usable.is_set(*cpu).unwrap_or(false)).collect();
        if let ([first, .., last], true) = (&all[..], PIN.load(Ordering::Relaxed)) {
            apart.place(THIS_THREAD, *first);
            for server in servers {
                apart.place(*server, *last);
            }
        }
        apart
    }

    fn place(&mut self, who: Pid, cpu: usize) {
        let mut only = CpuSet::new();
        if let (Ok(before), Ok(())) = (sched_getaffinity(who), only.set(cpu))
            && sched_setaffinity(who, &only).is_ok()
        {
            self.0.push((who, before));
        }
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        for (who, before) in &self.0 {
            let _ = sched_setaffinity(*who, before);
        }
    }
}
