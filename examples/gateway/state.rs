//! What runs now, and how another configuration takes its place.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// The gateway. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Gateway(Arc<Inner>);

struct Inner {
    current: ArcSwap<Current>,
    upstreams: Upstreams,
    file: Option<PathBuf>,
    draining: AtomicBool,
    pub(crate) open: bool,
    pub(crate) quiet: bool,
}

/// Reads a configuration.
pub(crate) fn read(file: &PathBuf) -> Result<Config, BoxError> {
    let name = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    Ok(Config::from_toml(&text, |name| std::env::var(name).ok())
        .map_err(|error| format!("{name}: {error}"))?)
}

impl Gateway {
    pub(crate) fn new(
        config: Config,
        file: Option<PathBuf>,
        open: bool,
        quiet: bool,
    ) -> Result<Self, BoxError> {
        let monitor = config.monitor()?.on_alert(|alert| eprintln!("alert: {alert}")).build()?;
        let stack = config.stack_with(monitor)?;
        let upstreams = upstream::client()?;
        let client = stack.layer(upstreams.clone());
        let current = ArcSwap::from_pointee(Current { config, stack, client });
        let draining = AtomicBool::new(false);
        Ok(Self(Arc::new(Inner { current, upstreams, file, draining, open, quiet })))
    }

    /// What new calls are to use.
    pub(crate) fn current(&self) -> Arc<Current> {
        self.0.current.load_full()
    }

    /// Reads the file again. Calls under way end on what they began with; a file that is wrong changes nothing.
    pub(crate) fn reload(&self) -> Result<(), BoxError> {
        let file = self.0.file.as_ref().ok_or("there is no file to read again")?;
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

    /// Whether everybody may see the figures.
    pub(crate) fn is_open(&self) -> bool {
        self.0.open
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.0.quiet
    }
}
