//! What the gateway says of itself.

use axum::Json;
use axum::extract::State;
use seawall::config::Client;
use seawall::cost_guard::{Ledger, Usd};
use serde_json::{Value, json};

use super::proxy::{REQUEST_ID, authenticate, take_id};
use super::server::{list_of, unix_seconds};
use super::state::{Current, Gateway};

/// All figures, for the page and for scripts.
pub(crate) async fn stats(State(gateway): State<Gateway>) -> Json<Value> {
    let current = gateway.current();
    let snapshot = serde_json::to_value(current.stack.monitor().snapshot()).unwrap_or_default();
    Json(json!({
        "now": unix_seconds(),
        "draining": gateway.is_draining(),
        "models": current.config.models().collect::<Vec<_>>(),
        "clients": current.config.clients().iter().map(|client| client.name().as_str()).collect::<Vec<_>>(),
        "accounts": accounts(&current),
        "upstreams": upstreams(&current),
        "monitor": snapshot,
    }))
}

/// What the routes lead to, as a list of models that the caller may use.
pub(crate) async fn models(
    State(gateway): State<Gateway>,
    mut headers: http::HeaderMap,
) -> axum::response::Response {
    let id = take_id(&mut headers);
    let mut response = listed(&gateway, &headers);
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

fn listed(gateway: &Gateway, headers: &http::HeaderMap) -> axum::response::Response {
    use axum::response::IntoResponse as _;
    let current = gateway.current();
    let client = match authenticate(&current, headers) {
        Ok(client) => client,
        Err(response) => return *response,
    };
    let may = |model: &str| client.as_ref().is_none_or(|client: &Client| client.may_use(Some(model)));
    let models = current.config.models().filter(|model| !model.contains('*') && may(model));
    Json(list_of(models)).into_response()
}

/// Every account of every budget: at most a hundred of each.
fn accounts(current: &Current) -> Vec<Value> {
    let ledger = current.stack.ledger();
    let dollars = |amount: Usd| amount.to_string();
    let mut all = Vec::new();
    for budget in ledger.budgets() {
        for (key, account) in ledger.accounts(budget.name()).into_iter().take(100) {
            all.push(json!({
                "budget": budget.name(),
                "key": key.as_str(),
                "spent": dollars(account.spent),
                "reserved": dollars(account.reserved),
                "limit": account.limit.map(dollars),
                "used": account.limit.map(|limit| share(account.spent, limit)),
                "resets_in": account.resets_in.map(|time| time.as_secs()),
            }));
        }
    }
    all
}

fn share(spent: Usd, limit: Usd) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a share to be looked at")]
    let of = |amount: Usd| amount.as_nanos() as f64;
    if limit.is_zero() { 1.0 } else { of(spent) / of(limit) }
}

/// Each upstream's breaker.
fn upstreams(current: &Current) -> Vec<Value> {
    let each = current.stack.breakers().iter().map(|(name, breaker)| {
        let snapshot = breaker.snapshot();
        json!({
            "name": name.as_str(),
            "breaker": format!("{:?}", snapshot.state),
            "open_left": snapshot.open_left.map(|time| time.as_secs_f64()),
        })
    });
    each.collect()
}
