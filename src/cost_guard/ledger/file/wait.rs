//! Waits for a reservation: first for room in the budgets, then for the file.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use super::FileLedger;
use super::ticket::Ticket;
use super::worker::Place;
use crate::cost_guard::ledger::{Cause, Denied, Granted, Ledger, MemoryHold, MemoryWait};

pin_project! {
    /// Waits until a reservation is written.
    ///
    /// Dropping it gives up what it may have reserved already.
    #[must_use = "futures do nothing unless polled"]
    pub struct FileWait {
        #[pin]
        state: State,
    }
}

pin_project! {
    #[project = StateProj]
    enum State {
        // Others hold what it needs.
        Contended { #[pin] wait: MemoryWait, ledger: FileLedger, place: Option<Place> },
        // It has its reservation, and the file is yet to know.
        Writing { writing: Writing },
    }
}

/// A reservation that is not written yet.
pub(super) struct Writing {
    ledger: FileLedger,
    /// `None`: handed over.
    granted: Option<Granted<MemoryHold>>,
    ticket: Arc<Ticket>,
}

impl Writing {
    /// Has it written, or gives it back where that is not possible.
    pub(super) fn begin(
        ledger: FileLedger,
        granted: Granted<MemoryHold>,
        place: Place,
    ) -> Result<Self, Denied> {
        let entries = ledger.memory.entries(granted.hold);
        let Some(ticket) = ledger.shared.open(granted.hold.id(), entries, place) else {
            ledger.memory.release(&granted.hold);
            return Err(Denied::new(Cause::Unavailable));
        };
        Ok(Self { ledger, granted: Some(granted), ticket })
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(granted) = self.granted.take() {
            self.ledger.release(&granted.hold);
        }
    }
}

impl FileWait {
    pub(super) fn contended(ledger: FileLedger, wait: MemoryWait, place: Place) -> Self {
        Self { state: State::Contended { wait, ledger, place: Some(place) } }
    }

    pub(super) fn writing(writing: Writing) -> Self {
        Self { state: State::Writing { writing } }
    }
}

impl Future for FileWait {
    type Output = Result<Granted<MemoryHold>, Denied>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            match state.as_mut().project() {
                // ## Contended => Writing
                StateProj::Contended { wait, ledger, place } => {
                    let granted = ready!(wait.poll(cx))?;
                    let place = place.take().expect("taken only when this state is left");
                    let writing = Writing::begin(ledger.clone(), granted, place)?;
                    state.set(State::Writing { writing });
                }
                StateProj::Writing { writing } => {
                    let written = ready!(writing.ticket.poll(cx));
                    let granted = writing.granted.take().expect("a wait answers once");
                    return Poll::Ready(if written {
                        Ok(granted)
                    } else {
                        writing.ledger.release(&granted.hold);
                        Err(Denied::new(Cause::Unavailable))
                    });
                }
            }
        }
    }
}

impl fmt::Debug for FileWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            State::Contended { .. } => "contended",
            State::Writing { .. } => "writing",
        };
        f.debug_struct("FileWait").field("state", &state).finish_non_exhaustive()
    }
}
