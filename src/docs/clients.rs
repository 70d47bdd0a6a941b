//! Clients of others below and above a stack: hyper, reqwest, tonic, async-openai.
//!
//! The layers speak [`http::Request`] and [`http::Response`], and stacks are put together with
//! [`tower::ServiceBuilder`](https://docs.rs/tower/latest/tower/struct.ServiceBuilder.html): depend on `tower` with its feature
//! `util`, for `ServiceExt` and `.map_err(..)`. What is no such service becomes one by a closure below the
//! stack, and, where callers want the client's own types, by another one above it. Each of these has a whole program in
//! the directory `examples`.
//!
//! # hyper
//!
//! The client takes the body that the layers send, [`CallBody`](crate::call::CallBody), and its error is boxed so that
//! a refusal fits in beside it:
//!
//! ```
//! use http::Request;
//! use hyper_util::{client::legacy::Client, rt::TokioExecutor};
//! use seawall::{BoxError, call::{CallBody, IntakeLayer, OutcomeLayer}, retry::{RetryLayer, RetryPolicy}};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # async fn example() -> Result<(), BoxError> {
//! let hyper = Client::builder(TokioExecutor::new()).build_http::<CallBody>();
//! let client = ServiceBuilder::new()
//!     .layer(IntakeLayer::new())
//!     .layer(RetryLayer::new(RetryPolicy::llm()))
//!     .layer(OutcomeLayer::new())
//!     .map_err(BoxError::from)
//!     .service(hyper);
//!
//! let request = Request::get("http://api.example.com/v1/models").body(CallBody::empty())?;
//! let response = client.clone().oneshot(request).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Call it by `client.clone().oneshot(request)`: a clone is a few reference counts, and shares all state.
//!
//! `build_http` speaks `http` alone. For `https` give the client a connector, here that of the crate hyper-rustls; and to keep
//! the stack in a struct, name it by a box for the service and one for the body of its responses:
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::{BodyExt, combinators::BoxBody};
//! use hyper_rustls::HttpsConnectorBuilder;
//! use hyper_util::{client::legacy::Client, rt::TokioExecutor};
//! use seawall::{BoxError, call::{CallBody, IntakeLayer, OutcomeLayer}, retry::{RetryLayer, RetryPolicy}};
//! use tower::{ServiceBuilder, ServiceExt, util::BoxCloneSyncService};
//!
//! struct Models {
//!     client: BoxCloneSyncService<Request<CallBody>, Response<BoxBody<Bytes, BoxError>>, BoxError>,
//! }
//!
//! impl Models {
//!     fn new() -> Result<Self, BoxError> {
//!         let tls = HttpsConnectorBuilder::new()
//!             .with_provider_and_native_roots(rustls::crypto::ring::default_provider())?
//!             .https_only()
//!             .enable_http1()
//!             .enable_http2()
//!             .build();
//!         let client = ServiceBuilder::new()
//!             .map_response(|response: Response<_>| response.map(|body| BodyExt::map_err(body, BoxError::from).boxed()))
//!             .layer(IntakeLayer::new())
//!             .layer(RetryLayer::new(RetryPolicy::llm()))
//!             .layer(OutcomeLayer::new())
//!             .map_err(BoxError::from)
//!             .service(Client::builder(TokioExecutor::new()).build(tls));
//!         Ok(Self { client: BoxCloneSyncService::new(client) })
//!     }
//!
//!     async fn ask(&self, json: String) -> Result<Bytes, BoxError> {
//!         let request = Request::post("https://api.example.com/v1/chat/completions")
//!             .header("content-type", "application/json")
//!             .body(CallBody::from(json))?;
//!         Ok(self.client.clone().oneshot(request).await?.into_body().collect().await?.to_bytes())
//!     }
//! }
//! # let _ = Models::ask;
//! ```
//!
//! # reqwest
//!
//! Two closures. The one below turns the request into reqwest's and the response into [`http::Response`]; it keeps the
//! response's URL, which reqwest would otherwise drop, as an extension. The one above turns the response back, and finds
//! the URL there. Leave out the second one to get an `http::Response`.
//!
//! ```
//! use http::{Request, Response};
//! use reqwest::ResponseBuilderExt;
//! use seawall::{BoxError, call::{CallBody, IntakeLayer, OutcomeLayer}, retry::{RetryLayer, RetryPolicy}};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # async fn example() -> Result<(), BoxError> {
//! let client = reqwest::Client::new();
//! let inner = client.clone();
//! let below = move |request: Request<CallBody>| {
//!     let client = inner.clone();
//!     async move {
//!         let request = request.map(reqwest::Body::wrap).try_into()?;
//!         let response = client.execute(request).await?;
//!         let url = Response::builder().url(response.url().clone()).body(())?;
//!         let mut response = Response::from(response);
//!         response.extensions_mut().extend(url.into_parts().0.extensions);
//!         Ok::<_, BoxError>(response)
//!     }
//! };
//! let service = ServiceBuilder::new()
//!     .map_response(|response: Response<_>| reqwest::Response::from(response.map(reqwest::Body::wrap)))
//!     .layer(IntakeLayer::new())
//!     .layer(RetryLayer::new(RetryPolicy::llm()))
//!     .layer(OutcomeLayer::new())
//!     .service_fn(below);
//!
//! let request: Request<reqwest::Body> = client.get("https://api.example.com/v1/models").build()?.try_into()?;
//! let response = service.clone().oneshot(request).await?;
//! println!("{} answers {}", response.url(), response.status());
//! # Ok(())
//! # }
//! ```
//!
//! reqwest's own timeouts, retries and redirects stand below all layers; switch off what the layers do better. Its error
//! says whether a connection was made, so that a retry knows that nothing was sent.
//!
//! # tonic
//!
//! With the feature `tonic`, the module `seawall::grpc` has what is needed and the ten lines: the layers stand between the
//! generated client and the channel, and over `Server::builder()` built with `.respond()`.
//!
//! # async-openai
//!
//! `Client::with_http_service` takes the stack over reqwest, with one small service outside of it: the client hands out a
//! factory of requests, which is asynchronous and can fail.
//!
//! ```
//! use async_openai::{Client, middleware::HttpRequestFactory};
//! use http::{Request, Response};
//! use seawall::{BoxError, call::{CallBody, IntakeLayer, OutcomeLayer}, retry::{RetryLayer, RetryPolicy}};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! let reqwest = reqwest::Client::new();
//! let stack = ServiceBuilder::new()
//!     .layer(IntakeLayer::new())
//!     .layer(RetryLayer::new(RetryPolicy::llm()))
//!     .layer(OutcomeLayer::new())
//!     .service_fn(move |request: Request<CallBody>| {
//!         let client = reqwest.clone();
//!         async move {
//!             let response = client.execute(request.map(reqwest::Body::wrap).try_into()?).await?;
//!             Ok::<_, BoxError>(Response::from(response))
//!         }
//!     });
//! let client = Client::new().with_http_service(service_fn(move |factory: HttpRequestFactory| {
//!     let stack = stack.clone();
//!     async move {
//!         let request: Request<reqwest::Body> = factory.build().await?.try_into()?;
//!         let response = stack.oneshot(request).await?;
//!         Ok::<_, BoxError>(reqwest::Response::from(response.map(reqwest::Body::wrap)))
//!     }
//! }));
//! # let _ = client;
//! ```
//!
//! The stack takes the place of the client's own retries. A refusal arrives as `OpenAIError::Boxed`, in which
//! [`Failure::refusal`](crate::Failure::refusal) finds it.
