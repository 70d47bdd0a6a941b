//! The words of this crate, each with one meaning.
//!
//! | word | what it means here |
//! |---|---|
//! | abandoned | left by its caller before it was over; nobody's failure ([`Class::Abandoned`](crate::Class::Abandoned)) |
//! | attempt | one sending of a call to one target; a call has one or several, and "3 attempts" includes the first |
//! | bound | the most that a call can use; what a budget reserves ([`Bound`](crate::cost_guard::Bound)) |
//! | budget | a limit on money in a window, or on retries as a share of the calls ([`cost_guard::Budget`](crate::cost_guard::Budget), [`retry::Budget`](crate::retry::Budget)) |
//! | call | what a caller asks for, once; [`Call`](crate::call::Call) holds what is known of it |
//! | class | what happened to an attempt, in one of ten words ([`Class`](crate::Class)) |
//! | closed, open, half-open | a breaker admits, refuses, probes ([`BreakerState`](crate::monitor::BreakerState)) |
//! | commit | the point of a response after which no other attempt may take its place ([`Commit`](crate::call::Commit)) |
//! | content | the first bytes of a response that carry an answer; pings and role chunks are none |
//! | deadline | the instant by which a whole call must be over ([`Deadline`](crate::Deadline)) |
//! | end | a response's body has finished, failed, or was dropped ([`End`](crate::gate::End)) |
//! | gate | what lets an attempt pass now, later, or not ([`Gate`](crate::gate::Gate)): breaker, guard, bucket, bulkhead |
//! | generation | what a breaker is in between two moves; an answer counts only for the one in which it was admitted |
//! | handle | a clone of a gate, monitor or table, by which its state is seen and changed from outside |
//! | head | status and headers of a response |
//! | hint | the wait that an upstream asks for |
//! | hop | which target of its chain an attempt goes to: the first, the second, … |
//! | key | what states are kept apart by: an upstream, a model, a tenant ([`Key`](crate::call::Key)) |
//! | lease | how long a probe may keep its slot |
//! | ledger | where spending is written down ([`Ledger`](crate::cost_guard::Ledger)) |
//! | outcome | how an attempt went, read once by the innermost layer ([`Outcome`](crate::call::Outcome)) |
//! | patience | the longest wait that is waited out, rather than given up at once |
//! | permit | the proof that an attempt was let in, held to its end ([`Permit`](crate::gate::Permit)) |
//! | probe | a call that an open breaker lets through to learn whether the upstream is back |
//! | reach | how far a failed attempt is proven to have come ([`Reach`](crate::Reach)) |
//! | refusal | a "no" of one of our layers; the upstream was not asked ([`Refusal`](crate::Refusal)) |
//! | reservation | money set aside before a call, as an upper bound |
//! | route | a caller's model, and the targets that can serve it, in order ([`Route`](crate::fallback::Route)) |
//! | scope | what a failure concerns: the request, the model, the account, the upstream ([`Scope`](crate::Scope)) |
//! | settle | to tell a permit how its attempt ended, exactly once: what is left over comes back, what is missing is charged |
//! | stack | layers around a service, outermost first |
//! | target | an upstream, and the model's name there ([`Target`](crate::fallback::Target)) |
//! | tenant | whom a call belongs to, by a verified identity |
//! | upstream | a named endpoint with its base URL and credential ([`Upstream`](crate::call::Upstream)) |
//! | verdict | what an outcome means to every layer: class, scope, hint, reach ([`Verdict`](crate::Verdict)) |
//! | window | the span of time that a limit is for ([`Window`](crate::cost_guard::Window)), or that a breaker looks back on |
