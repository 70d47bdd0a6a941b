//! An upstream that answers at once, and a proxy that does nothing but pass on.

use std::convert::Infallible;
use std::net::SocketAddr;

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

const CHUNKS: usize = 64;

/// Listens on a free port, and says on which.
pub(crate) async fn listen() -> TcpListener {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    listener
}

pub(crate) async fn provide() {
    let listener = listen().await;
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let serving = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
        tokio::spawn(serving);
    }
}

async fn answer(
    request: Request<Incoming>,
) -> Result<Response<UnsyncBoxBody<Bytes, Infallible>>, hyper::Error> {
    let asked = request.into_body().collect().await?.to_bytes();
    let streamed = asked.windows(13).any(|window| window == br#""stream":true"#);
    let response = Response::builder().header("x-request-id", "req_1");
    let response = if streamed {
        let body = StreamBody::new(stream::unfold(0, chunk)).boxed_unsync();
        response.header("content-type", "text/event-stream").body(body)
    } else {
        let text = format!(
            r#"{{"id":"c","object":"chat.completion","model":"model-a","choices":[{{"index":0,"message":{{"role":"assistant","content":"{}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":220,"completion_tokens":60,"total_tokens":280}}}}"#,
            "word ".repeat(160),
        );
        response.header("content-type", "application/json").body(Full::from(text).boxed_unsync())
    };
    Ok(response.unwrap())
}

/// One chunk a turn of the runtime, so that each is written by itself.
async fn chunk(at: usize) -> Option<(Result<Frame<Bytes>, Infallible>, usize)> {
    tokio::task::yield_now().await;
    let text = match at {
        at if at < CHUNKS => format!(
            "data: {{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"model-a\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"word{at} \"}},\"finish_reason\":null}}]}}\n\n"
        ),
        CHUNKS => "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"prompt_tokens\":220,\"completion_tokens\":64,\"total_tokens\":284}}\n\ndata: [DONE]\n\n".to_owned(),
        _ => return None,
    };
    Some((Ok(Frame::data(Bytes::from(text))), at + 1))
}

/// A proxy as bare as can be: another address, and bytes as they come.
pub(crate) async fn forward(upstream: SocketAddr) {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).build::<_, Incoming>(tcp);
    let listener = listen().await;
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let client = client.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            let path = request.uri().path_and_query().unwrap().as_str();
            *request.uri_mut() = format!("http://{upstream}{path}").parse::<Uri>().unwrap();
            request.headers_mut().remove("host");
            client.request(request)
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}
