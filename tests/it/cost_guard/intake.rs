//! What the intake layer reads from real requests, and what is reserved by it.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use seawall::BoxError;
use seawall::call::{CallBody, IntakeLayer, OutcomeLayer};
use seawall::cost_guard::{Budget, CostGuardLayer, Price, PriceTable, ServiceTier, Usd, Window};
use tower::{ServiceBuilder, ServiceExt, service_fn};

use super::{account, used};

fn chat(body: impl Into<Bytes>) -> Request<CallBody> {
    Request::post("https://api.example.com/v1/chat/completions")
        .header("content-type", "application/json")
        .body(CallBody::from(body.into()))
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_service_tier_that_is_asked_for_sets_the_price() {
    let tier = |name: &str, million: &str| {
        let rates = Price::per_million(million, million).unwrap().rates;
        ServiceTier { name: name.into(), rates, tiers: Vec::new() }
    };
    let mut price = Price::per_million("1", "1").unwrap();
    price.service_tiers = vec![tier("priority", "2"), tier("flex", "0.5")];
    let prices = PriceTable::new().model("m", price);
    for (tier, nanos) in [("priority", 2_000), ("flex", 500), ("auto", 1_000)] {
        let budget = Budget::new(Usd::dollars(1), Window::TOTAL);
        let layer = CostGuardLayer::new(prices.clone(), budget);
        let service = ServiceBuilder::new()
            .layer(IntakeLayer::new())
            .layer(layer.clone())
            .layer(OutcomeLayer::new())
            .service(service_fn(async |_: Request<CallBody>| {
                let response = Response::builder().header("content-type", "application/json");
                Ok::<_, BoxError>(response.body(Full::new(Bytes::from(used(10, 20)))).unwrap())
            }));
        let body = format!(r#"{{"model":"m","service_tier":"{tier}","max_tokens":100,"messages":[]}}"#);
        let response = service.oneshot(chat(body)).await.unwrap();
        assert!(account(layer.gate()).reserved >= Usd::nanos(100 * nanos), "{tier}: the dearest is held");
        response.into_body().collect().await.unwrap();
        assert_eq!(account(layer.gate()).spent, Usd::nanos(30 * nanos), "{tier}");
    }
}
