//! What the codes of providers mean.

use crate::verdict::{Class, Reason, Scope, Verdict};

/// What a code means, and whether it says so whatever the status is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meaning {
    pub(super) verdict: Verdict,
    /// A code that decides overrules the status: `insufficient_quota` comes with 429, and is no passing limit. One
    /// that does not is a word for the whole family (`invalid_request_error` also comes with 402): it tells scope and
    /// reason where the status agrees on the class, and everything where there is no status, inside a stream.
    pub(super) decides: bool,
}

/// What this code means, if it is known.
pub(super) fn meaning(code: &str) -> Option<Meaning> {
    if let Some(verdict) = deciding(code) {
        return Some(Meaning { verdict, decides: true });
    }
    family(code).map(|verdict| Meaning { verdict, decides: false })
}

fn deciding(code: &str) -> Option<Verdict> {
    let verdict = match code {
        // Money and quotas of an account.
        "insufficient_quota"
        | "credit_balance_exhausted"
        | "billing_not_active"
        | "billing_hard_limit_reached"
        | "organization_spend_limit_exceeded"
        | "project_spend_limit_exceeded"
        | "organization_usage_limit_exceeded"
        | "billing_error"
        | "enforced_spend_limit_reached"
        | "contract_spend_limit_reached"
        | "linked_organization_spend_limit_reached"
        | "linked_organization_billing_unavailable"
        | "payment_required"
        | "weight_exceeds_budget"
        | "openrouter_credits"
        | "openrouter_key_limit"
        | "ServiceQuotaExceededException" => Verdict::new(Class::Exhausted),
        // The quota of a day, of one model.
        "quota_exceeded" => Verdict::new(Class::Exhausted).with_scope(Scope::Model),
        // Credentials and accounts.
        "invalid_api_key"
        | "authentication_error"
        | "permission_error"
        | "organization_on_hold"
        | "account_deactivated"
        | "API_KEY_INVALID"
        | "API_KEY_SERVICE_BLOCKED"
        | "UNAUTHENTICATED"
        | "PERMISSION_DENIED"
        // Billing or region, in an error of Google's.
        | "FAILED_PRECONDITION"
        | "AccessDeniedException"
        | "UnrecognizedClientException"
        | "ExpiredTokenException" => Verdict::new(Class::Denied),
        // What only another model or a larger window serves.
        "context_length_exceeded" => unfit(Reason::Context),
        "model_not_found" | "model_decommissioned" | "DeploymentNotFound" | "ResourceNotFoundException" => {
            unfit(Reason::Model)
        }
        // Policies.
        "content_filter"
        | "content_policy_violation"
        | "ResponsibleAIPolicyViolation"
        | "invalid_prompt"
        | "cyber_policy"
        | "bio_policy"
        | "misalignment_policy_violation" => Verdict::new(Class::Invalid).with_reason(Reason::Policy),
        // Limits that pass, whatever status they come with.
        "slow_down"
        | "ramp_limit_exceeded"
        | "in_flight_budget_exhausted"
        | "openrouter_in_flight_budget" => Verdict::new(Class::Throttled).with_scope(Scope::Account),
        "service_tier_capacity_exceeded" => {
            Verdict::new(Class::Throttled).with_scope(Scope::Upstream).with_reason(Reason::Capacity)
        }
        // Short of capacity under a status that says limit or request.
        "flex_unavailable"
        | "resource_unavailable"
        | "capacity_exceeded"
        | "ModelNotReadyException"
        | "compaction_unavailable" => capacity(),
        // A model's own failure under a status that blames the request.
        "ModelErrorException"
        | "ModelStreamErrorException"
        | "ModelTimeoutException"
        | "modelStreamErrorException"
        | "modelTimeoutException"
        | "tool_use_failed" => Verdict::new(Class::Transient),
        _ => return None,
    };
    Some(verdict)
}

fn family(code: &str) -> Option<Verdict> {
    let verdict = match code {
        "rate_limit_exceeded"
        | "requests"
        | "tokens"
        | "token_quota_exceeded"
        | "too_many_tokens_error"
        | "too_many_requests_error"
        | "RateLimitReached"
        | "429" => Verdict::new(Class::Throttled),
        "rate_limit_error"
        | "RESOURCE_EXHAUSTED"
        | "ThrottlingException"
        | "TooManyRequestsException"
        | "throttlingException"
        | "quota-exceeded"
        | "abnormal-usage-detected" => Verdict::new(Class::Throttled).with_scope(Scope::Account),
        "overloaded_error"
        | "server_is_overloaded"
        | "service_unavailable_error"
        | "service_unavailable"
        | "ServiceUnavailableException"
        | "serviceUnavailableException"
        | "UNAVAILABLE"
        | "temporary-reduced-capacity" => capacity(),
        "server_error"
        | "internal_server_error"
        | "internal_error"
        | "api_error"
        | "timeout_error"
        | "conflict_error"
        | "cmek_key_unreachable"
        | "provider_unavailable"
        | "INTERNAL"
        | "UNKNOWN"
        | "ABORTED"
        | "DEADLINE_EXCEEDED"
        | "InternalServerException"
        | "internalServerException" => Verdict::new(Class::Transient),
        "not_found_error" | "NOT_FOUND" => unfit(Reason::Model),
        "invalid_request_error"
        | "invalid_value"
        | "invalid_encrypted_content"
        | "unsupported_parameter"
        | "string_above_max_length"
        | "request_too_large"
        | "request_body_too_large_after_decoding"
        | "INVALID_ARGUMENT"
        | "OUT_OF_RANGE"
        | "ValidationException"
        | "validationException" => Verdict::new(Class::Invalid),
        "CANCELLED" => Verdict::new(Class::Abandoned),
        _ => return None,
    };
    Some(verdict)
}

fn unfit(reason: Reason) -> Verdict {
    Verdict::new(Class::Unfit).with_reason(reason)
}

fn capacity() -> Verdict {
    Verdict::new(Class::Transient).with_reason(Reason::Capacity)
}
