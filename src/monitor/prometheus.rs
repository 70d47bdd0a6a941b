//! The text that Prometheus scrapes.

/// The content type of [`Snapshot::prometheus`](super::Snapshot::prometheus).
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

impl super::Snapshot {
    /// As text for Prometheus, of the content type [`PROMETHEUS_CONTENT_TYPE`](super::PROMETHEUS_CONTENT_TYPE).
    #[must_use]
    pub fn prometheus(&self) -> String {
        String::new()
    }
}
