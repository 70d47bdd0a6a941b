use std::time::Duration;

use super::*;

fn base() -> RoutesBuilder {
    Routes::builder().named("a").unwrap().named("b").unwrap()
}

fn to(model: &str, upstream: &str) -> Route {
    Route::to(model).target(Target::at(upstream))
}

fn served(routes: &Routes, model: Option<&str>) -> Option<(String, Option<Key>)> {
    let target = routes.targets(model).first()?;
    Some((target.upstream().name().to_string(), target.model().cloned()))
}

#[test]
fn the_exact_name_goes_before_the_longest_pattern_and_that_before_the_default() {
    let routes = base()
        .route(to("gpt-*", "a"))
        .route(to("gpt-5*", "b"))
        .route(to("gpt-5", "a"))
        .route(to("*-mini", "b"))
        .route(to("*", "b"))
        .alias("best", "better")
        .alias("better", "gpt-5")
        .build()
        .unwrap();
    let by = |model| served(&routes, model).unwrap();
    let named = |upstream: &str, model: &str| (upstream.to_owned(), Some(Key::from(model)));
    let own = |upstream: &str| (upstream.to_owned(), None);
    assert_eq!(by(Some("gpt-5")), named("a", "gpt-5"));
    assert_eq!(by(Some("best")), named("a", "gpt-5"), "an alias sends the name of its route");
    assert_eq!(by(Some("gpt-5-large")), own("b"));
    assert_eq!(by(Some("gpt-4")), own("a"));
    assert_eq!(by(Some("o-mini")), own("b"));
    assert_eq!((by(Some("claude")), by(None)), (own("b"), own("b")));
}

#[test]
fn without_a_default_an_unknown_model_has_no_target() {
    let routes = base().route(to("gpt-*", "a")).build().unwrap();
    for model in [None, Some(""), Some("gpt"), Some("xgpt-5")] {
        assert_eq!(served(&routes, model), None, "{model:?}");
    }
}

#[test]
fn a_star_stands_for_any_text_but_never_for_a_part_of_both_ends() {
    assert!(matches("ab*ba", "abba") && matches("ab*ba", "abxba"));
    assert!(!matches("ab*ba", "aba"));
}

#[test]
fn what_cannot_work_is_an_error_that_names_its_entry() {
    let zero = Target::at("a").timeout(Duration::ZERO);
    let cases = [
        (base().route(Route::to("m")), "routes.m.targets", "must not be empty"),
        (base().route(to("m", "nobody")), "routes.m.targets[0].upstream", "is not defined"),
        (
            base().route(to("m", "a").target(Target::at("a"))),
            "routes.m.targets[1]",
            "is the same as targets[0]",
        ),
        (
            base().route(to("m", "a").target(Target::at("a").model("m"))),
            "routes.m.targets[1]",
            "is the same as targets[0]",
        ),
        (base().route(to("m", "a")).route(to("m", "b")), "routes.m", "is defined twice"),
        (base().route(to("*", "a")).route(to("*", "b")), "routes.*", "is defined twice"),
        (base().route(to("a*b*c", "a")), "routes.a*b*c", "has more than one `*`"),
        (base().route(to("", "a")), "routes.", "has no name"),
        (base().route(Route::to("m").target(zero)), "routes.m.targets[0].timeout", "must not be zero"),
        (
            base().route(Route::to("m").target(Target::at("a").attempts(0))),
            "routes.m.targets[0].attempts",
            "must not be zero",
        ),
        (
            base().route(Route::to("m").target(Target::at("a").context(0))),
            "routes.m.targets[0].context",
            "must not be zero",
        ),
        (
            base().route(Route::to("m").target(Target::at("a").model(""))),
            "routes.m.targets[0].model",
            "must not be empty",
        ),
        (base().named("a").unwrap(), "upstreams.a", "is defined twice"),
        (base().alias("x", "y").alias("y", "x"), "aliases.x", "leads in a circle"),
        (base().alias("x", "x"), "aliases.x", "leads in a circle"),
        (base().alias("x", "nothing"), "aliases.x", "leads to no route"),
        (base().route(to("m", "a")).alias("m", "m"), "aliases.m", "is also the name of a route or alias"),
        (
            base().route(to("m", "a")).alias("x", "m").alias("x", "m"),
            "aliases.x",
            "is also the name of a route or alias",
        ),
    ];
    for (builder, field, problem) in cases {
        let error = builder.build().unwrap_err();
        assert_eq!((error.field(), error.problem()), (field, problem));
    }
}

#[test]
fn more_targets_than_a_route_can_have_are_an_error() {
    let mut many = Route::to("m");
    for n in 0..64 {
        many = many.target(Target::at("a").model(format!("m{n}")));
    }
    assert_eq!(base().route(many.clone()).build().unwrap().targets(Some("m")).len(), 64);
    assert!(base().route(many.target(Target::at("b"))).build().is_err());
}

#[test]
fn what_was_learned_of_a_target_outlives_a_replacement() {
    let old = base().route(to("m", "a")).build().unwrap();
    old.targets(Some("m"))[0].pace.observe(Duration::from_secs(1));
    let handle = super::super::RoutesHandle::new(old);
    handle.replace(base().route(to("m", "a").target(Target::at("b"))).build().unwrap());
    let now = handle.current();
    let paces: Vec<_> = now.targets(Some("m")).iter().map(|target| target.pace.get()).collect();
    assert_eq!(paces, [Some(1_000_000_000), None]);
}
