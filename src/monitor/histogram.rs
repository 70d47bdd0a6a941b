//! Latencies as histograms of the `hdrhistogram` crate: to be merged over processes, written as logs, or asked for
//! percentiles that a snapshot does not tell.

use hdrhistogram::Histogram;

use super::monitor::Monitor;
use super::sketch;

/// What a histogram is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Of<'a> {
    /// Calls, as callers saw them.
    Calls,
    /// Attempts at all targets.
    Attempts,
    /// Attempts at one target, by the names that [`Target`](super::Target) tells.
    Target {
        /// The upstream.
        upstream: &'a str,
        /// The model.
        model: &'a str,
    },
}

/// How far a response had come. The order is that of the times in a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Until {
    /// Its head was there.
    Head,
    /// Its first content was there.
    Content,
    /// Its last byte was there.
    End,
}

/// A span that ends now, from the shortest to the longest; see [`Series`](super::Series) for how long each truly is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Span {
    /// The last minute.
    Minute,
    /// The last five minutes.
    FiveMinutes,
    /// The last hour.
    Hour,
    /// Since the monitor was made.
    SinceStart,
}

impl Monitor {
    /// How long things took, as an [`hdrhistogram::Histogram`] of microseconds with three significant digits; `None` if there
    /// is no such target.
    ///
    /// It has the values that [`Latency`](super::Latency) summarises, and with the same precision: a value is told as the
    /// largest of its bucket, above the true one by at most 0.1 % (where a row was made coarser, 3.2 %). The longest that is
    /// told apart is 71 minutes. Made anew at each call, of up to 180 KB: not for every request.
    ///
    /// ```
    /// use seawall::monitor::{Monitor, Of, Span, Until};
    ///
    /// let monitor = Monitor::new();
    /// // … calls pass through `monitor.layer()` …
    /// let histogram = monitor.histogram(Of::Calls, Until::End, Span::Hour).expect("calls are always counted");
    /// println!("99.9 % of the last hour's calls took at most {} µs", histogram.value_at_quantile(0.999));
    /// # assert_eq!(histogram.len(), 0);
    /// ```
    #[must_use]
    pub fn histogram(&self, of: Of<'_>, until: Until, span: Span) -> Option<Histogram<u64>> {
        let target = match of {
            Of::Target { upstream, model } => Some(self.target_number(upstream, model)?),
            Of::Calls | Of::Attempts => None,
        };
        self.empty();
        let now = self.inner.now();
        let mut histogram = Histogram::new_with_bounds(1, u64::from(u32::MAX), 3)
            .expect("the bounds and three digits are what the crate takes");
        let mut book = self.inner.book();
        for parts in book.parts(of, target, now) {
            for part in parts.into_iter().take(span as usize + 1) {
                part.each_time(until as usize, |bucket, count| {
                    // The last bucket ends at the bound; a coarser one may end beyond it.
                    histogram.saturating_record_n(sketch::top(bucket), count);
                });
            }
        }
        Some(histogram)
    }
}

#[cfg(test)]
#[cfg(not(seawall_loom))]
mod tests {
    use std::time::Duration;

    use tower::{Layer, ServiceExt, service_fn};

    use super::*;
    use crate::BoxError;
    use crate::call::{Call, Describe};

    #[derive(Clone)]
    struct Ask(Call);

    impl Describe for Ask {
        fn call(&self) -> Option<&Call> {
            Some(&self.0)
        }
    }

    struct Said;

    impl crate::call::Answer for Said {}

    fn ask(model: &str) -> Ask {
        let mut call = Call::default();
        (call.upstream, call.model) = (Some("up".into()), Some(model.into()));
        Ask(call)
    }

    /// Calls that take 1, 2, … `n` milliseconds.
    async fn calls(monitor: &Monitor, model: &str, n: u64) {
        for millis in 1..=n {
            let service = monitor.attempts().at_head().layer(service_fn(move |_: Ask| async move {
                tokio::time::sleep(Duration::from_millis(millis)).await;
                Ok::<_, BoxError>(Said)
            }));
            assert!(service.oneshot(ask(model)).await.is_ok());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_tells_what_the_snapshot_tells_and_the_rest() {
        let monitor = Monitor::builder().target("up", "a").target("up", "b").build().unwrap();
        calls(&monitor, "a", 100).await;
        calls(&monitor, "b", 10).await;
        let of = |model| Of::Target { upstream: "up", model };
        let histogram = monitor.histogram(of("a"), Until::End, Span::Minute).unwrap();
        assert_eq!(histogram.len(), 100);
        let summary = monitor.snapshot().targets[0].series.minute.to_end;
        for (quantile, told) in [(0.5, summary.p50), (0.9, summary.p90), (0.99, summary.p99)] {
            assert_eq!(u128::from(histogram.value_at_quantile(quantile)), told.as_micros());
        }
        assert!(histogram.equivalent(histogram.value_at_quantile(0.25), 25_000));
        assert_eq!(monitor.histogram(of("b"), Until::Head, Span::Hour).unwrap().len(), 10);
        assert_eq!(monitor.histogram(Of::Attempts, Until::Head, Span::SinceStart).unwrap().len(), 110);
        assert_eq!(monitor.histogram(Of::Calls, Until::Head, Span::SinceStart).unwrap().len(), 0);
        assert_eq!(monitor.histogram(of("c"), Until::Head, Span::Hour), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_span_leaves_out_what_was_before_it() {
        let monitor = Monitor::builder().target("up", "a").build().unwrap();
        calls(&monitor, "a", 5).await;
        tokio::time::advance(Duration::from_secs(120)).await;
        calls(&monitor, "a", 7).await;
        let len = |span| monitor.histogram(Of::Attempts, Until::End, span).unwrap().len();
        assert_eq!((len(Span::Minute), len(Span::FiveMinutes), len(Span::SinceStart)), (7, 12, 12));
    }
}
