//! Retry over real connections on loopback: what a client meets when a server goes away.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use seawall::call::CallBody;
use seawall::hyper::HyperErrors;
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::{BoxError, Reach};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower::{Layer, Service, ServiceExt};

const PROMPT: &str = "twenty-six bytes of prompt";

/// A server of which each connection is served by a closure that is told which request this is, from 0.
async fn server<F>(
    serve: impl Fn(TcpStream, Arc<AtomicUsize>) -> F + Send + 'static,
) -> (SocketAddr, Arc<AtomicUsize>)
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, requests) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counter = requests.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that goes away is no failure of the server.
            tokio::spawn(serve(stream, counter.clone()));
        }
    });
    (address, requests)
}

/// Reads one HTTP/1 request to the end of its body; its body.
async fn read_request(stream: &mut TcpStream) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let end = loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let whole = |bytes: &[u8]| match length {
        Some(length) => bytes.len() - end >= length,
        None => bytes.ends_with(b"0\r\n\r\n"),
    };
    while !whole(&bytes) {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(bytes[end..].to_vec()))
}

fn client(
    http2: bool,
) -> impl Service<Request<CallBody>, Response = Response<Incoming>, Error = BoxError, Future: Send> + Clone {
    let client = Client::builder(TokioExecutor::new()).http2_only(http2).build_http::<CallBody>();
    client.map_err(BoxError::from)
}

fn post(address: SocketAddr, body: CallBody) -> Request<CallBody> {
    Request::post(format!("http://{address}/v1/chat")).body(body).unwrap()
}

fn streamed() -> CallBody {
    CallBody::streaming(http_body_util::Full::new(Bytes::from(PROMPT)).map_frame(|frame| frame), 4096)
}

#[tokio::test(start_paused = true)]
async fn b007_a_connection_closed_after_the_request_was_read_is_ambiguous() {
    let (address, requests) = server(async |mut stream: TcpStream, requests: Arc<AtomicUsize>| {
        if read_request(&mut stream).await?.is_some_and(|body| body == PROMPT.as_bytes()) {
            requests.fetch_add(1, SeqCst);
        }
        Ok(())
    })
    .await;
    let send = async |policy: RetryPolicy| {
        let service = RetryLayer::new(policy).layer(client(false));
        assert!(service.oneshot(post(address, PROMPT.into())).await.is_err());
        requests.swap(0, SeqCst)
    };
    assert_eq!(send(RetryPolicy::http()).await, 1, "it may have been done");
    assert_eq!(send(RetryPolicy::builder().ambiguous(true).attempts(2).build().unwrap()).await, 2);
}

#[tokio::test(start_paused = true)]
async fn b001_with_and_without_a_length_the_second_attempt_carries_the_same_body() {
    for (body, wire) in
        [(CallBody::from(PROMPT), PROMPT.to_owned()), (streamed(), format!("1A\r\n{PROMPT}\r\n0\r\n\r\n"))]
    {
        let (address, requests) = server(move |mut stream: TcpStream, requests: Arc<AtomicUsize>| {
            let wire = wire.clone();
            async move {
                while let Some(body) = read_request(&mut stream).await? {
                    assert_eq!(body, wire.as_bytes());
                    let status = if requests.fetch_add(1, SeqCst) == 0 { "503 Busy" } else { "200 OK" };
                    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nhi");
                    stream.write_all(answer.as_bytes()).await?;
                }
                Ok(())
            }
        })
        .await;
        let service = RetryLayer::new(RetryPolicy::llm()).layer(client(false));
        let response = service.oneshot(post(address, body)).await.unwrap();
        assert_eq!((response.status().as_u16(), requests.load(SeqCst)), (200, 2));
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hi");
    }
}

#[tokio::test(start_paused = true)]
async fn b019_a_truncated_body_after_a_good_head_reaches_the_caller_as_an_error() {
    let (address, requests) = server(async |mut stream: TcpStream, requests: Arc<AtomicUsize>| {
        read_request(&mut stream).await?;
        requests.fetch_add(1, SeqCst);
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{}", "x".repeat(400));
        stream.write_all(answer.as_bytes()).await
    })
    .await;
    let service = RetryLayer::new(RetryPolicy::llm()).layer(client(false));
    let response = service.oneshot(post(address, PROMPT.into())).await.unwrap();
    assert!(response.into_body().collect().await.is_err());
    assert_eq!(requests.load(SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_cannot_be_made_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = attempts.clone();
    let inner = client(false).map_request(move |request| {
        counted.fetch_add(1, SeqCst);
        request
    });
    let policy = RetryPolicy::builder().patient_connect().build().unwrap();
    assert!(RetryLayer::new(policy).layer(inner).oneshot(post(address, PROMPT.into())).await.is_err());
    assert_eq!(attempts.load(SeqCst), 5, "a POST too: nothing was sent");
}

/// An HTTP/2 frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

const SETTINGS: u8 = 4;
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;
const REFUSED_STREAM: u32 = 7;

/// Reads frames until one ends a stream; false when the client is gone.
async fn read_stream(stream: &mut TcpStream) -> std::io::Result<bool> {
    loop {
        let mut head = [0; 9];
        if stream.read_exact(&mut head).await.is_err() {
            return Ok(false);
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        stream.read_exact(&mut vec![0; length]).await?;
        let (kind, flags) = (head[3], head[4]);
        if kind == SETTINGS && flags == 0 {
            stream.write_all(&frame(SETTINGS, 1, 0, &[])).await?;
        }
        // DATA or HEADERS with END_STREAM.
        if kind <= 1 && flags & 1 == 1 {
            return Ok(true);
        }
    }
}

/// How often a POST reaches a server that answers each with this frame, and then hangs up.
async fn attempts_against(answer: Vec<u8>) -> usize {
    let (address, requests) = server(move |mut stream: TcpStream, requests: Arc<AtomicUsize>| {
        let answer = answer.clone();
        async move {
            stream.read_exact(&mut [0; 24]).await?;
            stream.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
            if read_stream(&mut stream).await? {
                requests.fetch_add(1, SeqCst);
                stream.write_all(&answer).await?;
                stream.shutdown().await?;
                // Until the client has hung up too, so that no reset overtakes the answer.
                while stream.read(&mut [0; 64]).await? > 0 {}
            }
            Ok(())
        }
    })
    .await;
    let policy = RetryPolicy::builder().attempts(2).classify(HyperErrors::new()).build().unwrap();
    let result = RetryLayer::new(policy).layer(client(true)).oneshot(post(address, PROMPT.into())).await;
    assert!(result.is_err());
    requests.load(SeqCst)
}

#[tokio::test(start_paused = true)]
async fn b008_a_refused_stream_and_a_goaway_below_ours_prove_that_nothing_was_done() {
    let goaway = |last: u32| frame(GOAWAY, 0, 0, &[last.to_be_bytes(), 0_u32.to_be_bytes()].concat());
    assert_eq!(attempts_against(goaway(0)).await, 2, "our stream 1 is above the last one");
    assert_eq!(attempts_against(frame(RST_STREAM, 0, 1, &REFUSED_STREAM.to_be_bytes())).await, 2);
    assert_eq!(attempts_against(goaway(1)).await, 1, "ours may have been done");
    let broken = frame(GOAWAY, 0, 0, &[1_u32.to_be_bytes(), 2_u32.to_be_bytes()].concat());
    assert_eq!(attempts_against(broken).await, 1, "whatever went wrong on the connection");
    assert_eq!(
        attempts_against(frame(RST_STREAM, 0, 1, &2_u32.to_be_bytes())).await,
        1,
        "an internal error too"
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_closed_connection_had_not_taken_up_was_not_sent() {
    let (address, _) = server(async |stream: TcpStream, _: Arc<AtomicUsize>| {
        drop(stream);
        Ok(())
    })
    .await;
    let stream = hyper_util::rt::TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake::<_, CallBody>(stream).await.unwrap();
    drop(connection);
    let error = BoxError::from(sender.send_request(post(address, PROMPT.into())).await.unwrap_err());
    assert_eq!(seawall::hyper::reach(&*error), Reach::Unsent, "{error:?}");
    let unknown = BoxError::from("something else");
    assert_eq!(seawall::hyper::reach(&*unknown), Reach::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_reused_connection_that_closes_is_no_proof() {
    let (address, requests) = server(async |mut stream: TcpStream, requests: Arc<AtomicUsize>| {
        for answer in ["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", ""] {
            if read_request(&mut stream).await?.is_none() {
                return Ok(());
            }
            requests.fetch_add(1, SeqCst);
            stream.write_all(answer.as_bytes()).await?;
        }
        Ok(())
    })
    .await;
    let policy = RetryPolicy::builder().classify(HyperErrors::new()).build().unwrap();
    let service = RetryLayer::new(policy).layer(client(false));
    let first = service.clone().oneshot(post(address, PROMPT.into())).await.unwrap();
    first.into_body().collect().await.unwrap();
    let error = service.oneshot(post(address, PROMPT.into())).await.unwrap_err();
    assert_eq!((seawall::hyper::reach(&*error), requests.load(SeqCst)), (Reach::Unknown, 2));
}
