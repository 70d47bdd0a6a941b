//! From LiteLLM's router settings.
//!
//! The names on the left are those of LiteLLM's `model_list`, `router_settings` and `litellm_settings`; on the right stand the
//! settings of `Config` (feature `toml`), which the example `gateway` reads. Callers speak the API that their
//! upstream speaks: requests are given another URL, model and credential, and are not translated between providers.
//!
//! ```
//! # let env = |_: &str| Some("secret".to_owned());
//! let config = seawall::Config::from_toml(r#"
//! [upstreams.east]                        # an entry of model_list
//! base_url = "https://east.example.com/openai/v1"
//! api_key = "env:EAST_KEY"                # os.environ/EAST_KEY
//! requests_per_minute = 600               # rpm
//! tokens_per_minute = 100_000             # tpm
//! max_concurrent = 20                     # max_parallel_requests
//! [upstreams.other]
//! base_url = "https://api.other.example/v1"
//! api_key = "env:OTHER_KEY"
//!
//! [[routes]]
//! model = "gpt-4o"                        # model_name
//! order = "weighted"                      # routing_strategy: simple-shuffle
//! targets = [
//!   { upstream = "east", weight = 3, context = 128_000 },
//!   { upstream = "other", model = "large", weight = 1, context = 200_000 },   # fallbacks: [{ gpt-4o: [large] }]
//! ]
//! [[routes]]
//! model = "*"                             # default_fallbacks
//! targets = [{ upstream = "other" }]
//!
//! [aliases]
//! "gpt-4" = "gpt-4o"                      # model_group_alias
//!
//! [retry]
//! attempts = 4                            # num_retries: 3
//! [fallback]
//! max_attempts = 6
//! [breaker]
//! failures = 3                            # allowed_fails
//! within = "60s"
//! open_for = "30s"                        # cooldown_time
//! [timeout]
//! total = "600s"                          # timeout
//! first_content = "20s"                   # stream_timeout
//!
//! [[budgets]]                             # provider_budget_config
//! name = "providers"
//! key = "upstream"
//! limit = "100"
//! window = "day"
//! [prices."gpt-4o"]                       # or [price_file], with LiteLLM's own list
//! input_per_million = "2.50"
//! output_per_million = "10"
//! [prices."large"]
//! input_per_million = "1"
//! output_per_million = "4"
//! "#, env)?;
//! # let _ = config;
//! # Ok::<(), seawall::ConfigError>(())
//! ```
//!
//! # Deployments
//!
//! | LiteLLM | here | what is otherwise |
//! |---|---|---|
//! | `model_name` | `routes[].model` | one `*` stands for any text |
//! | `litellm_params.model` | `routes[].targets[].model` | without the provider's prefix |
//! | `litellm_params.api_base`, `api_key` | `upstreams.NAME.base_url`, `api_key` or `credential` | a deployment with limits of its own is an upstream of its own |
//! | `litellm_params.rpm`, `tpm` | `upstreams.NAME.requests_per_minute`, `tokens_per_minute` | held, with a short wait, and learned downwards from the provider's headers |
//! | `litellm_params.max_parallel_requests`, `default_max_parallel_requests` | `upstreams.NAME.max_concurrent` | to the end of a stream; a bounded queue |
//! | `litellm_params.weight` | `targets[].weight` with `order = "weighted"` | |
//! | `model_group_alias` | `aliases` | |
//!
//! # Routing
//!
//! | LiteLLM | here | what is otherwise |
//! |---|---|---|
//! | `routing_strategy: simple-shuffle` | `routes[].order = "weighted"` | |
//! | `routing_strategy: latency-based-routing` | `order = "fastest"` | by a moving average of the time to first content |
//! | `routing_strategy: usage-based-routing`, `least-busy` | – | targets whose breaker is open are passed over, and busy ones asked last |
//! | `enable_pre_call_checks` | `targets[].context` | set it and it is checked; unknown sizes fit |
//! | `fallbacks` | further `targets` | of the same route, in order; a group is not asked twice |
//! | `default_fallbacks` | targets of the route `*`, for models without a route; else list them | |
//! | `context_window_fallbacks` | targets with a larger `context` | after "too long" only larger ones are asked |
//! | `content_policy_fallbacks` | `"policy"` among `fallback.on` or `targets[].fallback_on` | off by default |
//! | `max_fallbacks` | `fallback.max_attempts` (6) | counts attempts of retries too |
//!
//! # Retries
//!
//! | LiteLLM | here | what is otherwise |
//! |---|---|---|
//! | `num_retries: n` | `retry.attempts = n + 1` | the same target; within a budget of a fifth of the calls (`retry_budget`) |
//! | `retry_after` | `retry.floor` | the upstream's `Retry-After` is obeyed in any case, up to `retry.patience` |
//! | `retry_policy.RateLimitErrorRetries`, `TimeoutErrorRetries`, `InternalServerErrorRetries` | – | in code: [`Rule::class`](crate::retry::Rule::class) with [`.attempts(n)`](crate::retry::Rule::attempts) |
//! | `retry_policy.AuthenticationErrorRetries`, `ContentPolicyViolationErrorRetries`, `BadRequestErrorRetries` | – | never retried: the answer would be the same |
//! | `model_group_retry_policy` | `upstreams.NAME.retry` | by upstream, not by model |
//!
//! # Cooldowns
//!
//! | LiteLLM | here | what is otherwise |
//! |---|---|---|
//! | `allowed_fails` | `breaker.failures` and `breaker.within` | failures *in a row*; beside it `failure_rate` and `minimum_calls` |
//! | `cooldown_time` | `breaker.open_for` | doubles up to `open_at_most`; then a few probes, and not the whole load |
//! | `allowed_fails_policy.RateLimitErrorAllowedFails` | `breaker.throttled` | a limit is no outage: neutral by default |
//! | `allowed_fails_policy`, the others | – | by class: a bad request is no vote, a denied credential opens at once |
//! | `disable_cooldowns` | `breaker.observe_only = true` | says what it would have done |
//!
//! # Time
//!
//! | LiteLLM | here | what is otherwise |
//! |---|---|---|
//! | `timeout` (600 s) | `timeout.total` (10 min) | over all attempts and targets together |
//! | `stream_timeout` | `timeout.first_content` and `timeout.idle` | to first content, and silence after it |
//! | `request_timeout` | `timeout.total`; `targets[].timeout` for one target | |
//!
//! # Money
//!
//! | LiteLLM | here | what is otherwise |
//! |---|---|---|
//! | `provider_budget_config` | `budgets[]` with `key = "upstream"` | reserved before the call: calls at once do not overspend it |
//! | budgets of keys and teams | `clients[]`, and `budgets[]` with `key = "client"` | clients are named in the file |
//! | price file | `price_file` with `format = "litellm"` | the same file; in code [`Prices::replace_from_litellm`](crate::cost_guard::Prices::replace_from_litellm) |
//! | `alerting`, `alerting_config` | `alerts` | as events and to a closure; not to Slack |
//!
//! # Without a counterpart
//!
//! Redis (`redis_host` …: state is of one process), caching (`cache_responses`, `caching_groups`), tags and affinity
//! (`enable_tag_filtering`, `optional_pre_call_checks`), `default_litellm_params`, guardrails, search tools, assistants, a user
//! interface for keys, and translation between providers' APIs.
