//! What runs now, and how another configuration takes its place.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use seawall::config::{Stack, Stacked};
use seawall::{BoxError, Config};
use tower::Layer;

use super::upstream::{self, Upstreams};

/// A configuration and the stack made of it.
pub(crate) struct Current {
    pub(crate) config: Config,
    pub(crate) stack: Stack,
    pub(crate) client: Stacked<Upstreams>,
}

/// What callers may take of the gateway's time and memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Until the head of a request is there.
    pub(crate) head: Duration,
    /// Silence within a request.
    pub(crate) silence: Duration,
    /// How long what was sent to a caller may stay unread.
    pub(crate) unread: Duration,
    /// The largest request that is passed through, in bytes: room for images and audio. One that is routed by its model
    /// is at most as large as the configuration's `max_body`.
    pub(crate) largest: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            silence: Duration::from_secs(30),
            unread: Duration::from_secs(60),
            largest: 64 << 20,
        }
    }
}

/// What is set from outside the configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// Where to read the configuration again.
    pub(crate) file: Option<PathBuf>,
    /// Whether everybody may see the figures.
    pub(crate) open: bool,
    /// No line for each call.
    pub(crate) quiet: bool,
    pub(crate) limits: Limits,
}

/// The gateway. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Gateway(Arc<Inner>);

struct Inner {
    current: ArcSwap<Current>,
    upstreams: Upstreams,
    options: Options,
    draining: AtomicBool,
}

/// Reads a configuration.
pub(crate) fn read(file: &Path) -> Result<Config, BoxError> {
    let name = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    Ok(Config::from_toml(&text, |name| std::env::var(name).ok())
        .map_err(|error| format!("{name}: {error}"))?)
}

impl Gateway {
    pub(crate) fn new(config: Config, options: Options) -> Result<Self, BoxError> {
        let monitor = config.monitor()?.on_alert(|alert| eprintln!("alert: {alert}")).build()?;
        let stack = config.stack_with(monitor)?;
        let upstreams = upstream::client()?;
        let client = stack.layer(upstreams.clone());
        let current = ArcSwap::from_pointee(Current { config, stack, client });
        let draining = AtomicBool::new(false);
        Ok(Self(Arc::new(Inner { current, upstreams, options, draining })))
    }

    /// What new calls are to use.
    pub(crate) fn current(&self) -> Arc<Current> {
        self.0.current.load_full()
    }

    /// Reads the file again. Calls under way end on what they began with; a file that is wrong changes nothing.
    pub(crate) fn reload(&self) -> Result<(), BoxError> {
        let file = self.0.options.file.as_ref().ok_or("there is no file to read again")?;
        let config = read(file)?;
        let old = self.current();
        if config.listen() != old.config.listen() {
            eprintln!("`listen` has changed: that takes a restart");
        }
        let stack = old.stack.renew(&config)?;
        let client = stack.layer(self.0.upstreams.clone());
        self.0.current.store(Arc::new(Current { config, stack, client }));
        Ok(())
    }

    /// From now on it is not ready for more.
    pub(crate) fn drain(&self) {
        self.0.draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.0.draining.load(Ordering::Relaxed)
    }

    pub(crate) fn options(&self) -> &Options {
        &self.0.options
    }
}
