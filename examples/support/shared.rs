//! What all handles and connections of one provider share.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpSocket;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::bill::{Billing, Price};
use super::builder::Pace;
use super::fault::Faults;
use super::limits::Meter;
use super::log::{Ended, How, Log};
use super::socket::Line;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) name: String,
    pub(super) address: SocketAddr,
    /// Bound and never listening, so that the port stays ours while the provider is dead.
    pub(super) _reserved: TcpSocket,
    pub(super) settings: Settings,
    state: Mutex<State>,
    /// Counts what the log saw happen.
    pub(super) news: watch::Sender<u64>,
    pub(super) alive: watch::Sender<bool>,
    pub(super) accepting: Mutex<Option<JoinHandle<()>>>,
}

/// What is set once.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) models: Option<HashSet<String>>,
    pub(super) key: Option<String>,
    pub(super) context: Option<u64>,
    pub(super) tokens: u64,
    pub(super) price: Price,
    pub(super) billing: Billing,
    pub(super) faults_by_request: bool,
}

/// What changes.
#[derive(Debug)]
pub(super) struct State {
    pub(super) faults: Faults,
    pub(super) meter: Option<Meter>,
    pub(super) pace: Pace,
    pub(super) log: Log,
    pub(super) active: usize,
    pub(super) connections: usize,
    pub(super) input: u64,
    pub(super) output: u64,
}

impl Shared {
    pub(super) fn new(
        name: String,
        address: SocketAddr,
        reserved: TcpSocket,
        settings: Settings,
        state: State,
    ) -> Self {
        Self {
            name,
            address,
            _reserved: reserved,
            settings,
            state: Mutex::new(state),
            news: watch::Sender::new(0),
            alive: watch::Sender::new(false),
            accepting: Mutex::new(None),
        }
    }

    /// A panic elsewhere leaves nothing half done here.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self) {
        self.news.send_modify(|count| *count += 1);
    }
}

/// Keeps the account of one request, and closes it when it is dropped.
#[derive(Debug)]
pub(super) struct Record {
    shared: Arc<Shared>,
    pub(super) line: Arc<Line>,
    number: usize,
    /// The tokens of the whole answer that are not sent yet, once there is one to pay for.
    unsent: u64,
    done: bool,
}

impl Record {
    pub(super) fn new(shared: Arc<Shared>, line: Arc<Line>, number: usize) -> Self {
        shared.state().active += 1;
        Self { shared, line, number, unsent: 0, done: false }
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// The head is about to be sent.
    pub(super) fn answered(&self, status: u16) {
        if let Some(seen) = self.shared.state().log.get(self.number) {
            seen.status = Some(status);
        }
        self.shared.tell();
    }

    /// An answer of so many tokens is begun: its input is to be paid now.
    pub(super) fn begin(&mut self, input: u64, output: u64) {
        self.unsent = output;
        self.bill(input, 0);
    }

    /// So many tokens of the answer are handed to the connection.
    pub(super) fn send(&mut self, tokens: u64) {
        self.unsent = self.unsent.saturating_sub(tokens);
        if let Some(seen) = self.shared.state().log.get(self.number) {
            seen.sent += tokens;
        }
        self.bill(0, tokens);
        self.shared.tell();
    }

    fn bill(&self, input: u64, output: u64) {
        let price = self.shared.settings.price.of(input, output);
        let mut state = self.shared.state();
        state.input += input;
        state.output += output;
        if let Some(seen) = state.log.get(self.number) {
            seen.billed += price;
        }
    }

    /// The request is over; what comes later changes nothing.
    pub(super) fn end(&mut self, how: How) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        if self.shared.settings.billing == Billing::Whole {
            self.bill(0, self.unsent);
        }
        let mut state = self.shared.state();
        state.active -= 1;
        if let Some(seen) = state.log.get(self.number) {
            seen.ended = Some(Ended { at: seawall::time::now(), how });
        }
        drop(state);
        self.shared.tell();
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let killed = self.line.was_killed();
        self.end(if killed { How::Killed } else { How::Disconnected });
    }
}
