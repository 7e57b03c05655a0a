//! A sign of life on a terminal, on anything that takes longer than `cli.spinner_delay`.

use std::cell::Cell;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mcpx::settings::typed::CliSettings;

use crate::output::{self, Printer};

/// A spinner, or a bar once a total is known; nothing where stderr is no terminal.
#[derive(Debug)]
pub(crate) struct Waiting {
    bar: ProgressBar,
    delay: Duration,
    tick: Duration,
    /// Somebody is asked meanwhile: nothing is to be drawn over that.
    quiet: Cell<bool>,
}

impl Waiting {
    /// Hidden at first.
    pub(crate) fn new(printer: Printer, settings: &CliSettings, text: String) -> Self {
        let bar = ProgressBar::new_spinner();
        bar.set_draw_target(ProgressDrawTarget::hidden());
        bar.set_message(text);
        let delay = if printer.lively { settings.spinner_delay } else { Duration::MAX };
        Self { bar, delay, tick: settings.spinner_tick, quiet: Cell::new(false) }
    }

    /// Waits for `work`, showing itself once that has taken a while.
    pub(crate) async fn during<F: Future>(&self, work: F) -> F::Output {
        if self.delay == Duration::MAX {
            return work.await;
        }
        let mut work = std::pin::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(self.delay) => {}
        }
        if !self.quiet.get() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.enable_steady_tick(self.tick);
        }
        let done = work.await;
        self.bar.finish_and_clear();
        done
    }

    /// A line beside what is shown.
    pub(crate) fn say(&self, text: &str) {
        self.bar.suspend(|| output::remark(text));
    }

    /// Leaves the terminal to a question.
    pub(crate) fn hush(&self) {
        self.quiet.set(true);
        self.bar.disable_steady_tick();
        self.bar.finish_and_clear();
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
    }

    /// Progress as a tool reports it.
    pub(crate) fn progress(&self, done: f64, total: Option<f64>, message: Option<String>) {
        if let Some(message) = message {
            self.bar.set_message(message);
        }
        let Some(total) = total.filter(|total| *total > 0.0) else { return };
        if self.bar.length().is_none()
            && let Ok(style) = ProgressStyle::with_template("{bar:30} {percent}% {msg}")
        {
            self.bar.set_style(style);
        }
        // A bar of whole steps: totals need not be whole numbers.
        let steps = BAR_STEPS * (done / total).clamp(0.0, 1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within 0..=1000"
        )]
        self.bar.set_position(steps as u64);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a constant")]
        self.bar.set_length(BAR_STEPS as u64);
    }
}

/// How finely a bar is drawn.
const BAR_STEPS: f64 = 1000.0;
