//! Shows how the training goes: a bar on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use crate::train::Epoch;

/// Progress over a known number of images, on standard error.
pub(crate) struct Progress {
    /// On a terminal only.
    bar: Option<ProgressBar>,
    start: Instant,
    epochs: usize,
    images: usize,
    done: usize,
}

impl Progress {
    /// Progress over `epochs` rounds of `images` images.
    pub(crate) fn new(epochs: usize, images: usize) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{msg:12} {bar:30} {percent:>3} %  {per_sec} images  ETA {eta}");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(epochs.saturating_mul(images) as u64)
                .with_style(style)
                .with_message(format!("epoch 1/{epochs}"))
        });
        Self { bar, start: Instant::now(), epochs, images, done: 0 }
    }

    /// A step over so many images is done.
    pub(crate) fn advance(&mut self, images: usize) {
        self.done += images;
        if let Some(bar) = &self.bar {
            bar.set_position(self.done as u64);
        }
    }

    /// Epoch number `n`, from 1, is done.
    pub(crate) fn epoch(&self, n: usize, epoch: &Epoch) {
        let line = format!(
            "epoch {n:>3}/{}  train loss {:.4}  test loss {:.4}  test accuracy {:>6.2} %",
            self.epochs,
            epoch.train_loss,
            epoch.test_loss,
            100.0 * epoch.test_accuracy
        );
        match &self.bar {
            Some(bar) => {
                bar.println(line);
                bar.set_message(format!("epoch {}/{}", (n + 1).min(self.epochs), self.epochs));
            }
            None => {
                let seconds = self.start.elapsed().as_secs_f64();
                let rate = self.done as f64 / seconds;
                let left = self.epochs.saturating_mul(self.images).saturating_sub(self.done) as f64 / rate;
                let left = HumanDuration(Duration::try_from_secs_f64(left.round()).unwrap_or_default());
                // A training goes on when nobody listens any more.
                let _ = writeln!(stderr(), "{line}  {rate:.0} images/s  ETA {left:#}");
            }
        }
    }

    /// The training is over.
    pub(crate) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}
