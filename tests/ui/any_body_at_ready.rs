//! The intake takes requests of any body, and `ready` does not say of which: `calls`, or `oneshot`, is missing.
use http::{Request, Response};
use seawall::BoxError;
use seawall::call::{CallBody, IntakeLayer};
use tower::{Service, ServiceBuilder, ServiceExt};

async fn ask() -> Result<(), BoxError> {
    let mut service = ServiceBuilder::new()
        .layer(IntakeLayer::new())
        .service_fn(|_: Request<CallBody>| async { Ok::<_, BoxError>(Response::new(String::new())) });
    service.ready().await?.call(Request::new(CallBody::empty())).await?;
    Ok(())
}

fn main() {
    let _ = ask();
}
