//! The handle of a provider, and its server.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, PoisonError};

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

use super::answer;
use super::builder::{Builder, Pace};
use super::fault::Fault;
use super::limits::{Limits, Meter};
use super::log::{Ended, Seen};
use super::shared::Shared;
use super::socket::{Line, Socket};

/// A simulated provider. Clones are handles on the same one.
#[derive(Clone, Debug)]
pub(crate) struct Provider {
    shared: Arc<Shared>,
}

impl Provider {
    pub(crate) fn builder(name: &str) -> Builder {
        Builder::new(name)
    }

    pub(super) fn new(shared: Shared) -> Self {
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.shared.name
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// The base URL, with `/v1`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.shared.address)
    }

    /// What happens to the next requests, one each. Replaces what is left of an earlier script.
    pub(crate) fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        self.shared.state().faults.script = faults.into_iter().collect();
    }

    /// What happens to every request that is not scripted.
    pub(crate) fn always(&self, fault: Fault) {
        self.shared.state().faults.always = fault;
    }

    /// What happens by chance, each with its share of the requests, where nothing else is set.
    pub(crate) fn rates(&self, faults: impl IntoIterator<Item = (f64, Fault)>) {
        self.shared.state().faults.rates = faults.into_iter().collect();
    }

    pub(crate) fn set_pace(&self, pace: Pace) {
        self.shared.state().pace = pace;
    }

    /// Other limits, unused so far.
    pub(crate) fn set_limits(&self, limits: Option<Limits>) {
        self.shared.state().meter = limits.map(Meter::new);
    }

    /// Resets all connections and refuses new ones, until it is revived. Returns when that is so.
    pub(crate) async fn kill(&self) {
        self.shared.alive.send_replace(false);
        let accepting = self.accepting().take();
        if let Some(task) = accepting {
            // It ends without fail, or with its runtime.
            let _ = task.await;
        }
    }

    /// Listens again, at the same address.
    #[expect(clippy::unused_async, reason = "needs a runtime, as `kill` does")]
    pub(crate) async fn revive(&self) -> io::Result<()> {
        if self.is_alive() {
            return Ok(());
        }
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(self.shared.address)?;
        let listener = socket.listen(1024)?;
        self.shared.alive.send_replace(true);
        let task = tokio::spawn(accept(self.shared.clone(), listener));
        *self.accepting() = Some(task);
        Ok(())
    }

    pub(crate) fn is_alive(&self) -> bool {
        *self.shared.alive.borrow()
    }

    /// What it saw, oldest first.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.state().log.entries.iter().cloned().collect()
    }

    /// How many requests it saw in all.
    pub(crate) fn requests(&self) -> usize {
        self.shared.state().log.count
    }

    /// How many requests are under way.
    pub(crate) fn active(&self) -> usize {
        self.shared.state().active
    }

    /// What it billed so far, in nano-dollars.
    pub(crate) fn billed(&self) -> u64 {
        let (input, output) = self.used();
        self.shared.settings.price.of(input, output)
    }

    /// The tokens that it billed: input and output.
    pub(crate) fn used(&self) -> (u64, u64) {
        let state = self.shared.state();
        (state.input, state.output)
    }

    /// Waits until this can be said of what it saw. The closure must not call the provider.
    pub(crate) async fn when(&self, mut is_so: impl FnMut(&[Seen]) -> bool) {
        let mut news = self.shared.news.subscribe();
        loop {
            if is_so(self.shared.state().log.entries.make_contiguous()) {
                return;
            }
            // The sender lives as long as the provider.
            let _ = news.changed().await;
        }
    }

    /// Waits for the end of the request of this number.
    pub(crate) async fn ended(&self, number: usize) -> Ended {
        let mut ended = None;
        self.when(|log| {
            ended = log.iter().find(|seen| seen.number == number).and_then(|seen| seen.ended);
            ended.is_some()
        })
        .await;
        ended.expect("waited for it")
    }

    fn accepting(&self) -> std::sync::MutexGuard<'_, Option<tokio::task::JoinHandle<()>>> {
        self.shared.accepting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves until the provider is killed, and returns when all connections are closed.
async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    let mut alive = shared.alive.subscribe();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            _ = alive.wait_for(|alive| !alive) => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                // A client that went away before it was accepted.
                let Ok((stream, _)) = accepted else { continue };
                connections.spawn(serve(shared.clone(), stream));
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn serve(shared: Arc<Shared>, stream: TcpStream) {
    // Where that fails the client is gone.
    let _ = stream.set_nodelay(true);
    let number = {
        let mut state = shared.state();
        state.connections += 1;
        state.connections - 1
    };
    let line = Line::new(number);
    let mut alive = shared.alive.subscribe();
    let socket = TokioIo::new(Socket::new(stream, line.clone()));
    let service = service_fn(|request| answer::answer(shared.clone(), line.clone(), request));
    let builder = auto::Builder::new(TokioExecutor::new());
    let mut serving = pin!(builder.serve_connection(socket, service));
    tokio::select! {
        biased;
        _ = alive.wait_for(|alive| !alive) => line.kill(),
        () = line.is_cut() => {}
        // A broken connection shows in the records of its requests.
        _ = serving.as_mut() => {}
    }
}
