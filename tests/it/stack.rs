//! Layers compose, however many.

use seawall::gate::GateLayer;
use seawall::retry::{RetryLayer, RetryPolicy};
use seawall::{BoxError, Fault};
use tower::{Service, ServiceBuilder, ServiceExt};

use crate::support::{Probe, Req, TestGate, read};

/// If each layer doubled the work of the compiler, this test would not end compiling: see `gate/mode.rs`.
#[tokio::test]
async fn sixteen_layers_compile_and_serve() {
    let gate = TestGate::default();
    let layer = || GateLayer::from_gate(gate.clone());
    let probe = Probe::new();
    let mut service = ServiceBuilder::new()
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .service(probe.clone());
    let response = service.ready().await.unwrap().call(Req::new(())).await.unwrap();
    assert_eq!(gate.held(), 16);
    read(response.into_body()).await;
    assert_eq!((gate.held(), gate.ends().len()), (0, 16));
    assert!(service.oneshot(Req::new(())).await.is_ok());
}

#[tokio::test]
async fn an_error_type_of_another_crate_is_wrapped_and_kept() {
    let gate = TestGate::default();
    let service = ServiceBuilder::new()
        .layer(GateLayer::from_gate(gate).at_head())
        .map_err(Fault::Inner)
        .service_fn(|n: u32| async move { if n == 0 { Err(std::fmt::Error) } else { Ok(n) } });
    assert_eq!(service.clone().oneshot(0).await, Err(Fault::Inner(std::fmt::Error)));
    assert_eq!(service.oneshot(7).await, Ok(7));
}

#[tokio::test]
async fn a_boxed_error_is_enough_too() {
    let service = ServiceBuilder::new()
        .layer(GateLayer::from_gate(TestGate::default()).at_head())
        .map_err(BoxError::from)
        .service_fn(|n: u32| async move { Ok::<_, std::fmt::Error>(n) });
    assert_eq!(service.oneshot(7).await.unwrap(), 7);
}

/// The same for retry, alone and between gates.
#[tokio::test]
async fn sixteen_layers_of_retry_and_gates_compile_and_serve() {
    let gate = TestGate::default();
    let layer = || GateLayer::from_gate(gate.clone());
    let retry = || RetryLayer::new(RetryPolicy::http());
    let probe = tower::service_fn(async |_: http::Request<String>| {
        Ok::<_, BoxError>(http::Response::new("served".to_owned()))
    });
    let service = ServiceBuilder::new()
        .layer(retry())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(retry())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(retry())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .layer(retry())
        .layer(layer())
        .layer(layer())
        .layer(layer())
        .service(probe);
    let response = service.oneshot(http::Request::new(String::new())).await.unwrap();
    assert_eq!(gate.held(), 12);
    read(response.into_body()).await;
    assert_eq!(gate.held(), 0);
}
