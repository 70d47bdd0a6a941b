//! gRPC with tonic: a client behind the layers, and a server behind them, unary and streaming.
//!
//! The client repeats what fails in the head and in trailers, opens its breaker, and sends its deadline along; the server
//! heeds that and keeps to a limit. Refusals of both are `tonic::Status`. Everything is on a port of this machine; it ends by
//! itself after about two seconds.
//!
//! ```sh
//! cargo run --example tonic --features tonic
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use std::convert::Infallible;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use seawall::bulkhead::BulkheadLayer;
use seawall::call::{CallBody, IntakeLayer, OutcomeLayer};
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::monitor::Event;
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::timeout::TimeoutLayer;
use seawall::token_bucket::{Quota, TokenBucketLayer};
use seawall::{BoxError, Deadline, Failure, grpc};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_stream::{Stream, StreamExt};
use tonic::body::Body;
use tonic::client::{Grpc, GrpcService};
use tonic::server::NamedService;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;
use tower::{Service, ServiceBuilder, service_fn};

/// What a `.proto` file would say: `message Text { string text = 1; }`.
#[derive(Clone, PartialEq, prost::Message)]
struct Text {
    #[prost(string, tag = "1")]
    text: String,
}

/// `service Writer { rpc Write(Text) returns (Text); rpc Recite(Text) returns (stream Text); }`: the server.
#[derive(Clone, Default)]
struct Writer {
    failures: Arc<AtomicUsize>,
}

type Words = Pin<Box<dyn Stream<Item = Result<Text, Status>> + Send>>;

impl Writer {
    fn fails(&self) -> bool {
        self.failures.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok()
    }

    async fn write(self, request: tonic::Request<Text>) -> Result<tonic::Response<Text>, Status> {
        if self.fails() {
            return Err(Status::unavailable("the pen is dry"));
        }
        let deadline = request.extensions().get::<Deadline>().copied();
        let asked = request.into_inner().text;
        let left = deadline.map_or(Duration::MAX, |deadline| deadline.remaining(seawall::time::now()));
        if left < Duration::from_secs(1) {
            println!("  the server has {:.1} s for {asked}", left.as_secs_f32());
        }
        if asked == "a novel" {
            std::future::pending::<()>().await;
        }
        Ok(tonic::Response::new(Text { text: format!("Here is {asked}.") }))
    }

    fn recite(&self) -> Words {
        // The head of the response is sent before anybody knows: this status travels in trailers.
        let first = if self.fails() { Err(Status::unavailable("lost for words")) } else { Ok("One ") };
        let words = [first, Ok("wave "), Ok("after "), Ok("another.")];
        let words = words.map(|word| word.map(|text| Text { text: text.to_owned() }));
        Box::pin(tokio_stream::iter(words))
    }
}

// What a code generator would write for it.
impl Service<Request<Body>> for Writer {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let writer = self.clone();
        Box::pin(async move {
            let mut server = tonic::server::Grpc::new(ProstCodec::default());
            Ok(match request.uri().path() {
                "/example.Writer/Write" => {
                    server.unary(service_fn(move |asked| writer.clone().write(asked)), request).await
                }
                "/example.Writer/Recite" => {
                    let recite = service_fn(move |_: tonic::Request<Text>| {
                        std::future::ready(Ok(tonic::Response::new(writer.recite())))
                    });
                    server.server_streaming(recite, request).await
                }
                _ => Status::unimplemented("no such method").into_http(),
            })
        })
    }
}

impl NamedService for Writer {
    const NAME: &'static str = "example.Writer";
}

/// And for its client.
#[derive(Clone)]
struct WriterClient<T>(Grpc<T>);

impl<T> WriterClient<T>
where
    T: GrpcService<Body>,
    T::ResponseBody: Send + 'static,
    <T::ResponseBody as http_body::Body>::Error: Into<BoxError>,
{
    async fn ready(&mut self) -> Result<(), Status> {
        self.0.ready().await.map_err(grpc::status)
    }

    async fn write(&mut self, request: tonic::Request<Text>) -> Result<String, Status> {
        self.ready().await?;
        let path = "/example.Writer/Write".parse().expect("it is a path");
        let response: tonic::Response<Text> = self.0.unary(request, path, ProstCodec::default()).await?;
        Ok(response.into_inner().text)
    }

    async fn recite(&mut self, request: tonic::Request<Text>) -> Result<Streaming<Text>, Status> {
        self.ready().await?;
        let path = "/example.Writer/Recite".parse().expect("it is a path");
        Ok(self.0.server_streaming(request, path, ProstCodec::default()).await?.into_inner())
    }
}

fn ask(text: &str) -> tonic::Request<Text> {
    tonic::Request::new(Text { text: text.to_owned() })
}

fn tell(result: Result<String, Status>) {
    match result {
        Ok(text) => println!("  => {text}"),
        Err(status) => {
            let whose = if status.refusal().is_some() { "a layer of this client" } else { "the other side" };
            println!("  => {:?} by {whose}: {}", status.code(), status.message());
        }
    }
}

fn narrate(event: &Event<'_>) {
    match event {
        Event::Retrying { attempt, after, verdict, .. } => {
            let wish = verdict.hint().map_or(String::new(), |hint| format!(", it asked for {hint:.0?}"));
            println!("  attempt {attempt} failed{wish}; the next one in {} ms", after.as_millis());
        }
        Event::BreakerMoved { to, .. } => println!("  the breaker is now {to:?}"),
        _ => {}
    }
}

/// A server that admits four calls at once, takes eight a second and four of them at a time, and heeds deadlines. It has a
/// runtime of its own, so that it can go away with all its connections.
async fn serve(writer: Writer) -> Result<(String, Runtime), BoxError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let listener = runtime.spawn(TcpListener::bind("127.0.0.1:0")).await??;
    let url = format!("http://{}", listener.local_addr()?);
    let (four, eight) = (NonZeroU64::MIN.saturating_add(3), NonZeroU64::MIN.saturating_add(7));
    let limit =
        TokenBucketLayer::builder().requests(Quota::per_second(eight).burst(four)).refuse().build()?;
    let deadline = TimeoutLayer::builder().heed(grpc::TIMEOUT).build()?;
    let server = Server::builder()
        .layer(deadline.respond())
        .layer(BulkheadLayer::new(4).respond())
        .layer(limit.respond())
        .add_service(writer)
        .serve_with_incoming(TcpIncoming::from(listener));
    runtime.spawn(server);
    Ok((url, runtime))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let writer = Writer::default();
    let (url, server) = serve(writer.clone()).await?;
    let channel = Endpoint::try_from(url)?.connect_lazy();

    let breaker = CircuitBreakerLayer::builder()
        .consecutive_failures(4, Duration::from_secs(60))
        .observer(narrate)
        .build()?;
    let deadline = TimeoutLayer::builder().total(Duration::from_secs(5)).heed(grpc::TIMEOUT).build()?;
    let tell_the_rest =
        TimeoutLayer::builder().head(Duration::from_secs(2)).propagate(grpc::TIMEOUT).build()?;
    let service = ServiceBuilder::new()
        // Of a refusal, the status that says so.
        .map_err(grpc::status)
        .layer(IntakeLayer::new())
        .layer(deadline)
        .layer(RetryLayer::new(RetryPolicy::llm()).observer(narrate))
        .layer(breaker)
        .layer(BulkheadLayer::new(2).refuse())
        .layer(tell_the_rest)
        .layer(OutcomeLayer::new().grpc_frame_time(Duration::from_secs(1)))
        .map_err(BoxError::from)
        .map_request(|request: Request<CallBody>| request.map(Body::new))
        .service(channel);
    let mut client = WriterClient(Grpc::new(service));

    println!("a call");
    tell(client.write(ask("a poem")).await);

    println!("a call that fails twice: the status is in the head");
    writer.failures.store(2, SeqCst);
    tell(client.write(ask("a letter")).await);

    println!("a stream that fails once: the status is in trailers, behind a good head");
    writer.failures.store(1, SeqCst);
    let mut words = client.recite(ask("a poem")).await?;
    while let Some(word) = words.next().await {
        println!("  - {}", word?.text);
    }

    // The server's limit is another part of the story: let it be full again.
    tokio::time::sleep(Duration::from_millis(500)).await;
    println!("a call that has 200 ms, for work that never ends");
    let mut novel = ask("a novel");
    novel.set_timeout(Duration::from_millis(200));
    tell(client.write(novel).await);

    println!("more calls than the server takes in a second");
    for _ in 0..6 {
        tell(client.write(ask("a postcard")).await);
    }

    println!("three calls at once, where this client allows two");
    let mut others = [client.clone(), client.clone(), client.clone()];
    let [a, b, c] = &mut others;
    let (a, b, c) = tokio::join!(a.write(ask("one")), b.write(ask("two")), c.write(ask("three")));
    [a, b, c].into_iter().for_each(tell);

    println!("the server is gone");
    server.shutdown_background();
    for _ in 0..3 {
        tell(client.write(ask("a farewell")).await);
    }
    Ok(())
}
