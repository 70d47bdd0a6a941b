//! A body that is written down while it is first sent.
//!
//! All handles share one log of frames and the source behind it. Invariants:
//!
//! 1. Frame `n` of the source is `log[n - base]`; what lies before `base` is given back.
//! 2. A handle at the end of the log may poll the source; it takes it out for that time, so that no lock is held while
//!    somebody else's code runs. What it gets goes to the log before anybody sees it.
//! 3. `base` moves only over frames that no handle needs, or when the log outgrows its limit; a handle behind `base` fails.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::failed::BodyFailed;
use crate::refusal::BoxError;

type Source = Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>;

/// What a frame counts beside its data: an entry of the log, and a share of what holds the data.
const FRAME_OVERHEAD: usize = 64;

/// One handle.
pub(super) struct Recorded {
    shared: Arc<Shared>,
    id: u64,
    /// The frame that this handle gets next.
    next: usize,
    started: bool,
    failed: bool,
}

struct Shared {
    state: Mutex<State>,
    waiters: Arc<Waiters>,
}

struct State {
    /// Not here while a handle polls it, and when it is over.
    source: Option<Source>,
    over: Option<Over>,
    log: VecDeque<Piece>,
    base: usize,
    /// Bytes in the log, overhead included.
    held: usize,
    limit: usize,
    handles: usize,
    /// The handles that have begun to read, by id, and the frame that each gets next.
    readers: Vec<(u64, usize)>,
    next_id: u64,
    /// What the source says of the rest of it, for when it is not here.
    rest: SizeHint,
    rest_is_empty: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Ended,
    Failed,
}

enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
}

impl Recorded {
    pub(super) fn new<B>(body: B, limit: usize) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let state = State {
            rest: body.size_hint(),
            rest_is_empty: body.is_end_stream(),
            source: Some(Box::pin(BoxedErrors { body })),
            over: None,
            log: VecDeque::new(),
            base: 0,
            held: 0,
            limit,
            handles: 1,
            readers: Vec::new(),
            next_id: 1,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), waiters: Arc::default() });
        Self { shared, id: 0, next: 0, started: false, failed: false }
    }

    pub(super) fn is_intact(&self) -> bool {
        let state = self.shared.lock();
        state.base == 0 && state.over != Some(Over::Failed)
    }

    /// Whether the limit can hold all of it, as far as it says how much that is.
    pub(super) fn fits(&self) -> bool {
        let state = self.shared.lock();
        let least = state.rest.lower().saturating_add(FRAME_OVERHEAD as u64);
        state.base == 0 && state.held as u64 + least <= state.limit as u64
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.failed {
            return Poll::Ready(None);
        }
        let mut state = self.shared.lock();
        if !self.started {
            self.started = true;
            state.readers.push((self.id, self.next));
        }
        let Some(offset) = self.next.checked_sub(state.base) else {
            self.failed = true;
            return Poll::Ready(Some(Err(BodyFailed::boxed(Lost::Forgotten))));
        };
        if let Some(piece) = state.log.get(offset) {
            let frame = piece.frame();
            self.next += 1;
            let unneeded = state.advance(self.id, self.next);
            drop(state);
            drop(unneeded);
            return Poll::Ready(Some(Ok(frame)));
        }
        match state.over {
            Some(Over::Ended) => return Poll::Ready(None),
            Some(Over::Failed) => {
                self.failed = true;
                return Poll::Ready(Some(Err(BodyFailed::boxed(Lost::Failed))));
            }
            None => {}
        }
        // Before the source is polled, or found to be with another handle: a wake in between must not be missed.
        self.shared.waiters.add(self.id, cx.waker());
        let Some(source) = state.source.take() else { return Poll::Pending };
        drop(state);
        self.poll_source(source)
    }

    fn poll_source(&mut self, source: Source) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut lent = Lent { shared: &self.shared, source: Some(source) };
        let waker = Waker::from(Arc::clone(&self.shared.waiters));
        let polled = lent.poll(&mut Context::from_waker(&waker));
        let frame = match polled {
            Poll::Pending => {
                lent.give_back(None);
                return Poll::Pending;
            }
            Poll::Ready(None) => {
                lent.end(Over::Ended);
                return Poll::Ready(None);
            }
            Poll::Ready(Some(Err(error))) => {
                lent.end(Over::Failed);
                self.failed = true;
                return Poll::Ready(Some(Err(BodyFailed::boxed(error))));
            }
            Poll::Ready(Some(Ok(frame))) => frame,
        };
        let (frame, piece) = Piece::of(frame);
        self.next += 1;
        lent.give_back(Some((piece, self.id, self.next)));
        self.shared.waiters.remove(self.id);
        self.shared.waiters.wake_all();
        Poll::Ready(Some(Ok(frame)))
    }

    pub(super) fn is_end_stream(&self) -> bool {
        let state = self.shared.lock();
        let at_end = self.failed || self.next >= state.base + state.log.len();
        at_end
            && (self.failed
                || state.over == Some(Over::Ended)
                || (state.over.is_none() && state.rest_is_empty))
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        let state = self.shared.lock();
        let Some(offset) = self.next.checked_sub(state.base) else { return SizeHint::default() };
        let known: u64 = state.log.iter().skip(offset).map(|piece| piece.len() as u64).sum();
        match state.over {
            Some(Over::Ended) => SizeHint::with_exact(known),
            Some(Over::Failed) => SizeHint::default(),
            None => {
                let mut hint = SizeHint::new();
                // The upper bound first: a lower one may not exceed it.
                if let Some(upper) = state.rest.upper() {
                    hint.set_upper(upper.saturating_add(known));
                }
                hint.set_lower(state.rest.lower().saturating_add(known));
                hint
            }
        }
    }
}

impl Clone for Recorded {
    fn clone(&self) -> Self {
        let mut state = self.shared.lock();
        state.handles += 1;
        let id = state.next_id;
        state.next_id += 1;
        drop(state);
        Self { shared: Arc::clone(&self.shared), id, next: 0, started: false, failed: false }
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.handles -= 1;
        state.readers.retain(|(id, _)| *id != self.id);
        let unneeded = state.forget_unneeded();
        drop(state);
        drop(unneeded);
        // Somebody else may have waited for what this handle was about to read.
        self.shared.waiters.remove(self.id);
        self.shared.waiters.wake_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What left the log. Dropped outside the lock: it may hold the last reference to somebody's buffer.
type Unneeded = Vec<Piece>;

impl State {
    /// The handle `id` will get frame `next` next.
    fn advance(&mut self, id: u64, next: usize) -> Unneeded {
        if let Some((_, position)) = self.readers.iter_mut().find(|(reader, _)| *reader == id) {
            *position = next;
        }
        self.forget_unneeded()
    }

    fn record(&mut self, piece: Piece, id: u64, next: usize) -> Unneeded {
        self.held += piece.len() + FRAME_OVERHEAD;
        self.log.push_back(piece);
        let mut unneeded = self.advance(id, next);
        if self.held > self.limit {
            self.base += self.log.len();
            self.held = 0;
            unneeded.extend(std::mem::take(&mut self.log));
        }
        unneeded
    }

    /// Takes out of the log what no handle will read: all that every reader has, unless a handle is yet to begin.
    fn forget_unneeded(&mut self) -> Unneeded {
        let end = self.base + self.log.len();
        let yet_to_begin = self.handles > self.readers.len() && self.base == 0;
        let needed = if yet_to_begin {
            0
        } else {
            self.readers.iter().map(|(_, next)| *next).filter(|next| *next >= self.base).min().unwrap_or(end)
        };
        let count = needed.saturating_sub(self.base).min(self.log.len());
        let unneeded: Unneeded = self.log.drain(..count).collect();
        self.base += count;
        self.held -= unneeded.iter().map(|piece| piece.len() + FRAME_OVERHEAD).sum::<usize>();
        if self.log.is_empty() {
            self.log.shrink_to_fit();
        }
        unneeded
    }
}

impl Piece {
    fn of(frame: Frame<Bytes>) -> (Frame<Bytes>, Self) {
        match frame.into_data() {
            Ok(data) => (Frame::data(data.clone()), Self::Data(data)),
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                (Frame::trailers(trailers.clone()), Self::Trailers(trailers))
            }
        }
    }

    fn frame(&self) -> Frame<Bytes> {
        match self {
            Self::Data(data) => Frame::data(data.clone()),
            Self::Trailers(trailers) => Frame::trailers(trailers.clone()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Data(data) => data.len(),
            Self::Trailers(_) => 0,
        }
    }
}

/// The source while it is polled outside the lock. If that panics, the body has failed for everybody.
struct Lent<'a> {
    shared: &'a Shared,
    source: Option<Source>,
}

impl Lent<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.source {
            Some(source) => source.as_mut().poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn give_back(mut self, read: Option<(Piece, u64, usize)>) {
        let Some(source) = self.source.take() else { return };
        let (rest, rest_is_empty) = (source.size_hint(), source.is_end_stream());
        let mut state = self.shared.lock();
        state.source = Some(source);
        (state.rest, state.rest_is_empty) = (rest, rest_is_empty);
        let unneeded = read.map(|(piece, id, next)| state.record(piece, id, next));
        drop(state);
        drop(unneeded);
    }

    fn end(mut self, over: Over) {
        let source = self.source.take();
        self.shared.lock().over = Some(over);
        self.shared.waiters.wake_all();
        drop(source);
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if self.source.is_some() {
            self.shared.lock().over = Some(Over::Failed);
            self.shared.waiters.wake_all();
        }
    }
}

/// Who waits for the source. Apart from the state, so that a waker that the source keeps does not keep the source.
#[derive(Default)]
struct Waiters(Mutex<Vec<(u64, Waker)>>);

impl Waiters {
    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Waker)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, id: u64, waker: &Waker) {
        let mut waiting = self.lock();
        match waiting.iter_mut().find(|(waiter, _)| *waiter == id) {
            Some((_, old)) => old.clone_from(waker),
            None => waiting.push((id, waker.clone())),
        }
    }

    fn remove(&self, id: u64) {
        self.lock().retain(|(waiter, _)| *waiter != id);
    }

    fn wake_all(&self) {
        let waiting = std::mem::take(&mut *self.lock());
        for (_, waker) in waiting {
            waker.wake();
        }
    }
}

impl Wake for Waiters {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_all();
    }
}

pin_project! {
    /// A body whose errors are boxed.
    struct BoxedErrors<B> {
        #[pin]
        body: B,
    }
}

impl<B> Body for BoxedErrors<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        self.project().body.poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Why a handle cannot go on.
#[derive(Debug)]
enum Lost {
    Forgotten,
    Failed,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forgotten => "the request body cannot be sent again: its start was not kept",
            Self::Failed => "the request body cannot be sent again: reading it has failed",
        })
    }
}

impl std::error::Error for Lost {}
