//! Clients of others below and above the layers.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use axum::Router;
use axum::response::Redirect;
use axum::routing::{get, post};
use http::{Request, Response, StatusCode};
use reqwest::ResponseBuilderExt;
use seawall::bulkhead::BulkheadLayer;
use seawall::call::{CallBody, IntakeLayer, OutcomeLayer};
use seawall::circuit_breaker::CircuitBreakerLayer;
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::{BoxError, Failure, Reach};
use tokio::net::TcpListener;
use tower::{Service, ServiceBuilder, ServiceExt};

pub(crate) async fn serve(app: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

/// reqwest as the service below a stack: the first of the two closures of the docs.
fn below(
    client: reqwest::Client,
) -> impl Service<
    Request<CallBody>,
    Response = Response<reqwest::Body>,
    Error = BoxError,
    Future: Future<Output = Result<Response<reqwest::Body>, BoxError>> + Send,
> + Clone
+ Send {
    tower::service_fn(move |request: Request<CallBody>| {
        let client = client.clone();
        async move {
            let response = client.execute(request.map(reqwest::Body::wrap).try_into()?).await?;
            let url = Response::builder().url(response.url().clone()).body(())?;
            let mut response = Response::from(response);
            response.extensions_mut().extend(url.into_parts().0.extensions);
            Ok(response)
        }
    })
}

#[tokio::test]
async fn reqwest_goes_through_the_layers_and_keeps_its_url() {
    let asked = std::sync::Arc::new(AtomicUsize::new(0));
    let seen = asked.clone();
    let echo = move |body: String| async move {
        match seen.fetch_add(1, SeqCst) {
            0 => (StatusCode::SERVICE_UNAVAILABLE, String::new()),
            _ => (StatusCode::OK, body),
        }
    };
    let app = Router::new()
        .route("/echo", post(echo))
        .route("/old", get(|| async { Redirect::permanent("/new") }))
        .route("/new", get(|| async { "here" }));
    let url = serve(app).await;
    let client = reqwest::Client::new();
    let service = ServiceBuilder::new()
        .map_response(|response: Response<_>| reqwest::Response::from(response.map(reqwest::Body::wrap)))
        .layer(IntakeLayer::new())
        .layer(RetryLayer::new(RetryPolicy::llm()))
        .layer(CircuitBreakerLayer::new())
        .layer(BulkheadLayer::new(1))
        .layer(OutcomeLayer::new())
        .service(below(client.clone()));

    let request = client.post(format!("{url}/echo")).json(&["twice"]).build().unwrap();
    let request: Request<reqwest::Body> = request.try_into().unwrap();
    let response = service.clone().oneshot(request).await.unwrap();
    assert_eq!(response.text().await.unwrap(), r#"["twice"]"#, "the body is sent again as it was");
    assert_eq!(asked.load(SeqCst), 2);

    let request: Request<reqwest::Body> =
        client.get(format!("{url}/old")).build().unwrap().try_into().unwrap();
    let response = service.clone().oneshot(request).await.unwrap();
    assert_eq!(response.url().as_str(), format!("{url}/new"));
    assert_eq!(response.text().await.unwrap(), "here");
}

#[tokio::test]
async fn a_connection_that_reqwest_never_made_has_sent_nothing() {
    let service = below(reqwest::Client::new());
    let request = Request::get("http://127.0.0.1:1/").body(CallBody::empty()).unwrap();
    let error = service.oneshot(request).await.unwrap_err();
    assert_eq!(error.reach(), Reach::Unsent, "{error:?}");
}
