//! Builds a provider.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpSocket;

use super::bill::{Billing, Price};
use super::fault::Faults;
use super::limits::{Limits, Meter};
use super::log::Log;
use super::server::Provider;
use super::shared::{Settings, Shared, State};

/// How fast a good answer comes. All at once by default.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// From the request to the head.
    pub(crate) head: Duration,
    /// From the head of a stream to its first token.
    pub(crate) first_token: Duration,
    /// From one token to the next.
    pub(crate) token: Duration,
}

/// Builds a [`Provider`].
#[derive(Debug)]
#[must_use]
pub(crate) struct Builder {
    name: String,
    settings: Settings,
    limits: Option<Limits>,
    pace: Pace,
    seed: u64,
    log: usize,
    address: SocketAddr,
}

impl Builder {
    pub(super) fn new(name: &str) -> Self {
        let settings = Settings {
            models: None,
            key: None,
            context: None,
            tokens: 12,
            price: Price::default(),
            billing: Billing::default(),
            faults_by_request: false,
        };
        Self {
            name: name.to_owned(),
            settings,
            limits: None,
            pace: Pace::default(),
            seed: 0,
            log: 4096,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        }
    }

    /// The only models that it has; another is a 404. By default it has any.
    pub(crate) fn models<'a>(mut self, models: impl IntoIterator<Item = &'a str>) -> Self {
        self.settings.models = Some(models.into_iter().map(str::to_owned).collect());
        self
    }

    /// The key that it asks for, as a bearer token or in `x-api-key`. None by default.
    pub(crate) fn key(mut self, key: &str) -> Self {
        self.settings.key = Some(key.to_owned());
        self
    }

    /// The longest prompt, in tokens of four bytes. Any by default.
    pub(crate) fn context(mut self, tokens: u64) -> Self {
        self.settings.context = Some(tokens);
        self
    }

    /// How long its answers are, where the request sets no lower bound. 12 tokens by default.
    pub(crate) fn tokens(mut self, tokens: u64) -> Self {
        self.settings.tokens = tokens;
        self
    }

    /// What it bills. Nothing by default.
    pub(crate) fn price(mut self, price: Price) -> Self {
        self.settings.price = price;
        self
    }

    /// What it bills for an answer that does not come to its end.
    pub(crate) fn billing(mut self, billing: Billing) -> Self {
        self.settings.billing = billing;
        self
    }

    /// How much it takes. Without limits by default.
    pub(crate) fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Lets a request say what is to happen to it: a [`Fault`] in its header `x-fault`, or as its model behind `fault:`. What
    /// is no fault is a 400.
    pub(crate) fn faults_by_request(mut self) -> Self {
        self.settings.faults_by_request = true;
        self
    }

    pub(crate) fn pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// What the faults by chance are drawn from.
    pub(crate) fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How many requests the log holds. 4 096 by default.
    pub(crate) fn log(mut self, entries: usize) -> Self {
        self.log = entries;
        self
    }

    /// Where it listens, over IPv4. On a free port of 127.0.0.1 by default.
    pub(crate) fn at(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Listens, and serves in the background.
    pub(crate) async fn start(self) -> io::Result<Provider> {
        let reserved = TcpSocket::new_v4()?;
        reserved.set_reuseaddr(true)?;
        reserved.bind(self.address)?;
        let state = State {
            faults: Faults::new(self.seed),
            meter: self.limits.map(Meter::new),
            pace: self.pace,
            log: Log::new(self.log),
            active: 0,
            connections: 0,
            input: 0,
            output: 0,
        };
        let address = reserved.local_addr()?;
        let provider = Provider::new(Shared::new(self.name, address, reserved, self.settings, state));
        provider.revive().await?;
        Ok(provider)
    }
}
