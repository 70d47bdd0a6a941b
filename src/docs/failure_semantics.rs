//! What holds when something goes wrong: a caller leaves, code panics, a process dies, a clock jumps, a store is down.
//!
//! One rule stands behind all of it. What an attempt takes (a slot, tokens, money, a probe) is a *permit*. It is made before the
//! inner future is, it outlives that future and the response's body, and it is settled exactly once, with an
//! [`End`](crate::gate::End) that says how the attempt ended. There is no counter that somebody could forget to count down.
//!
//! # When a response is over
//!
//! With its body: at its last frame or trailers, with an error, when it says that it is at its end, at its exact length, with
//! the terminal event of its stream (`[DONE]`, `message_stop`: clients stop reading there), or at the head where no body may
//! follow (HEAD, 204, 304). Layers built with `.at_head()` end at the head in any case.
//!
//! A body that is dropped before that was *left by its caller*. Where the head was a failure, that decides, and dropping what
//! follows it is no leaving.
//!
//! # The caller leaves
//!
//! Dropping the future of a call, or the body of its response, is safe at every point, and it is the only way to cancel.
//!
//! | layer | what comes back, what stays |
//! |---|---|
//! | [intake](crate::call::intake) | the bytes that it had collected are dropped |
//! | [timeout](crate::timeout) | its timers end |
//! | [fallback](crate::fallback) | the attempt under way ends; no other target is asked, nothing is spawned |
//! | [retry](crate::retry) | no attempt and no wait goes on; a budget token that was taken stays taken |
//! | [circuit breaker](crate::circuit_breaker) | no vote, and a probe gives its slot back; a failure where no head had come after 60 s, since a timeout outside looks just like that |
//! | [cost guard](crate::cost_guard) | not sent: all comes back. Sent: charged by the [rule](crate::cost_guard::Unreported), by default all that was reserved, since the upstream may go on and bill it; with [`drain`](crate::cost_guard::CostGuardLayer::drain) it is read on, in a task of its own, and charged by its usage |
//! | [token bucket](crate::token_bucket) | a place in the queue is given up, and those behind move up. Not sent: all comes back. Sent: by its [rule](crate::token_bucket::Abandoned), by default what is known to have been used |
//! | [bulkhead](crate::bulkhead) | the slot, or the place in the queue; a slot that was granted and not seen yet goes to the next in line |
//! | [monitor](crate::monitor) | counts the call as *abandoned*, which is nobody's failure |
//!
//! # The caller's own body fails
//!
//! A request's body that breaks off while it is sent is its caller's fault: the attempt's failure is
//! [`Invalid`](crate::Class::Invalid), which is no vote, no reason to retry and none to ask another target
//! ([`Failure::is_of_the_request`](crate::Failure::is_of_the_request)).
//!
//! # Something panics
//!
//! No layer catches a panic of the inner service: it unwinds through the stack to the task. On its way every permit is settled,
//! as [`Failed`](crate::gate::End::Failed) if the service was called: the breaker counts a failure, the guard charges by its rule
//! (the request may have been sent), the bucket keeps what was reserved, the bulkhead has its slot back.
//!
//! Code of yours that a layer calls (a classifier, a key, a cost, a priority, a price) runs outside of every lock, so its panic
//! harms that call alone. A panic of an [`Observer`](crate::monitor::Observer) is contained: the call does not notice. With
//! `panic = "abort"` the process is gone, and what follows holds.
//!
//! # The process dies
//!
//! State is of the process. After a restart:
//!
//! | state | is |
//! |---|---|
//! | circuit breakers | closed; those of upstreams that are down open again after their first failures |
//! | token buckets | full; the first answers that state limits lower them. With [`headroom`](crate::token_bucket::TokenBucketBuilder::headroom), or a smaller burst, a restart does not go above the provider's limit |
//! | bulkheads, retry budgets | empty, and at their reserve |
//! | budgets in a [`MemoryLedger`](crate::cost_guard::MemoryLedger) | forgotten: spent is zero again |
//! | budgets in a `FileLedger` (feature `file-ledger`) | as they were. Each reservation is in the file before its call is sent; those that a dead process left unsettled are charged by a rule, by default in full |
//! | figures of the monitor | zero; Prometheus handles such a reset of its counters |
//!
//! Several processes share nothing by themselves: n of them have n times the limits. Divide the limits, or implement
//! [`Ledger`](crate::cost_guard::Ledger) over a store that they share.
//!
//! # A clock jumps
//!
//! All decisions go by the monotonic clock, tokio's ([`time`](crate::time)): setting the wall clock changes nothing about open times,
//! buckets, timeouts, deadlines and rolling windows. The wall clock is read for dates in headers, where the response has no `Date`
//! of its own, and for calendar windows and off-peak hours of the cost guard. If it is put forward, the next window begins. If it
//! is put back, no window is granted twice: the last two are remembered, and an unknown earlier one opens only when a window's
//! length has really passed. Whether the monotonic clock runs while a machine sleeps is up to the operating system.
//!
//! # A store is down
//!
//! | what fails | what happens |
//! |---|---|
//! | the file of a `FileLedger` | new calls are refused with [`LedgerUnavailable`](crate::RefusalKind::LedgerUnavailable) until it works again; with [`fail_open`](crate::cost_guard::CostGuardBuilder::fail_open) they pass unreserved, and [`Event::Unreserved`](crate::monitor::Event::Unreserved) tells. What calls under way cost is kept in memory and written then |
//! | a [`Ledger`](crate::cost_guard::Ledger) of yours | the same, where it answers [`Unavailable`](crate::cost_guard::ledger::Cause::Unavailable). Settling cannot be refused: it queues, and what its queue cannot take it settles in full |
//! | a price list that cannot be read | the error says why, and the [`Prices`](crate::cost_guard::Prices) in use stay |
//! | a configuration that cannot be read | the running one stays: `Stack::renew` changes nothing before all of the new one is known to work |
//! | a metrics recorder, an observer | nothing: no call waits for them |
//!
//! # A deadline comes near
//!
//! `total` of the [timeout](crate::timeout) sets the call's [`Deadline`](crate::Deadline), or a caller does. An earlier one always
//! holds. Below it:
//!
//! | layer | obeys |
//! |---|---|
//! | fallback, retry | no attempt and no wait begins that would go past it |
//! | token bucket | a call whose exact wait goes past it is refused at once |
//! | cost guard | waits no longer for what others hold |
//! | bulkhead | a waiter is refused the moment that the deadline no longer leaves the expected service time |
//! | timeout | ends the call when it has come, in whatever phase, also while the inner service is not ready |
//! | upstream | is told, if you say in which header ([`propagate`](crate::timeout::TimeoutBuilder::propagate)) |
//!
//! # An upstream misbehaves
//!
//! Whatever is read from the wire is bounded in bytes and time, and what is malformed says nothing: a limit that cannot be, a
//! `Retry-After` in the past or of a million years, a usage that contradicts itself. An error inside a 200 is an error to every
//! layer. What was passed on to the caller is never taken back: after the [commit](crate::call::Commit) an error stays an error.
//!
//! # Too many keys
//!
//! Keyed state is bounded, at 10 000 keys by default. Beyond it a state that decides as a fresh one would makes room; where none
//! is such, newcomers share one. So a flood of made-up keys neither grows the process nor frees anybody from a limit. Budgets
//! never forget what is spent: there the bound is 1 000 000 accounts each, and a newcomer beyond it is refused with
//! [`TooManyKeys`](crate::RefusalKind::TooManyKeys).
