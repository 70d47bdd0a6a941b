//! What the compiler says when a stack does not fit together, and the mend.
//!
//! First of all, put [`calls`](crate::calls) outermost, with the request type of the stack:
//!
//! ```
//! # use seawall::{BoxError, calls, gate::{Admission, Gate, GateLayer}, Refusal};
//! # use tower::ServiceBuilder;
//! # #[derive(Clone)] struct Mine;
//! # impl<Req> Gate<Req> for Mine {
//! #     type Permit = ();
//! #     type Wait = std::future::Ready<Result<(), Refusal>>;
//! #     fn admit(&self, _: &mut Req) -> Admission<(), Self::Wait> { Admission::Now(()) }
//! # }
//! # let layer = GateLayer::from_gate(Mine).at_head();
//! let service = ServiceBuilder::new()
//!     .layer(calls::<String>())
//!     .layer(layer)
//!     .service_fn(|prompt: String| async move { Ok::<_, BoxError>(prompt) });
//! ```
//!
//! It also names the request where a stack takes several: an [`IntakeLayer`](crate::call::IntakeLayer) takes a request of any
//! body, so that `.ready()` alone does not say of which ("type annotations needed … cannot satisfy `<_ as HttpBody>::Data ==
//! Bytes`"). `.oneshot(request)` needs no name; for `.ready()` there is `calls::<Request<CallBody>>()`.
//!
//! Where even then it says no more than E0599, call `calls::<Prompt>().layer(service)` on the finished service instead.
//!
//! Without it, a misfit anywhere in the stack is only told as "the method `ready` exists … but its trait bounds were
//! not satisfied". With it, the compiler names the layer's own need:
//!
//! | it says | why | the mend |
//! |---|---|---|
//! | `` `Answer` is not a response with a body `` | the layer holds its permit to the end of the response's body, and this response has none | `.at_head()` on the layer; or implement [`WithBody`](crate::gate::WithBody) for a streaming response of your own |
//! | `` `MyError` cannot carry a refusal `` | the layer must be able to refuse in the inner service's error type, and to find a refusal of a layer below in it | below the layer `.map_err(seawall::Fault::Inner)`, or `.map_err(seawall::BoxError::from)`; or implement [`Failure`](crate::Failure) and `From<Refusal>` |
//! | `` `Prompt` does not say what it asks for `` | the layer reads deadline, priority or key from the request | `impl seawall::call::Describe for Prompt {}`; or `.blind()` on the layer's builder; or [`Tagged`](crate::call::Tagged) for a foreign type |
//! | `the trait bound … Clone is not satisfied` | a call that waited goes on with a clone of the inner service | put a [`Buffer`](https://docs.rs/tower/latest/tower/buffer/) or another shared handle below |
//! | `` `Prompt` cannot be sent to another target `` | a fallback aims each try anew from the request | over HTTP an [`IntakeLayer`](crate::call::IntakeLayer) above; for an own type implement [`Aim`](crate::call::Aim) |
//! | `type annotations needed`, at `.ready()` | the outermost layer takes requests of any body | `.clone().oneshot(request)`; or [`calls`](crate::calls) outermost |
//! | `` `…` cannot tell what `Answer` means ``, or ``expected `Result<Response<_>, _>`, found `Result<Answer, …>` `` | the layer judges answers, and its default reads HTTP responses; there is none for your own type | give its builder a classifier: `.classify(classify::responses(\|answer: &Answer\| Verdict::SUCCESS))`, see [`classify`](crate::classify) |
//! | `` `Answer` does not say what became of the call `` | the layer asks a response for its verdict and usage | `impl seawall::call::Answer for Answer {}`; its methods have defaults |
//! | `` `…` cannot read limits from `Answer` `` | a token bucket looks for the upstream's limits in each response | on its builder `.classify(..)`, which reads none, and after it `.limits(..)` with a reader of your own if you have one |
//! | `` retry cannot repeat `Prompt` `` | a request is copied before it is sent | implement `Clone`; or `.copy_with(..)` on the policy's builder |
//! | `` `…` is no retry policy for `Prompt` over `…` `` | one of the needs of a retry is missing: an error that tells a refusal, a judgement of the response, a request that can be copied | as above, each |
//! | `` a fallback cannot serve `Prompt` over `…` `` | the same of a fallback | `.at_head()` and `.classify(..)` for answers of your own; `.map_err(..)` below it |
//! | `` `Answer` is not an HTTP response with a body of `Bytes` `` | the outcome layer reads HTTP | leave it out, and implement [`Answer`](crate::call::Answer) |
//! | `` `…` is no response of a cost guard that ends with its body `` | a stream is cut at the end of its body | no `.at_head()` where there is `.cut_streams()` |
//! | `` the error of `…` cannot be made from an `std::io::Error` `` | an injected fault is an error of the client | below the fault layer `.map_err(seawall::BoxError::from)` |
//! | ``unresolved import `tower::ServiceExt` ``, ``no method named `map_err` found for struct `ServiceBuilder` `` | they stand behind a feature of tower | `tower = { version = "0.5", features = ["util"] }` |
