//! Which target is asked next.

use std::time::Duration;

use super::Chain;
use crate::call::Describe;
use crate::fallback::health::Standing;
use crate::fallback::order::{self, Order, Set};
use crate::fallback::served::Skip;
use crate::fallback::service::Course;
use crate::fallback::target::Target;

impl<R> Chain<R> {
    /// The next target, and whether it is asked with a probe.
    pub(super) fn choose<Req: Describe, C>(
        &mut self,
        original: &Req,
        course: &Course<C>,
    ) -> Option<(usize, bool)> {
        let estimate = original.call().and_then(|call| call.estimate);
        let tokens = estimate.map_or(0, |estimate| estimate.input_tokens);
        let fits = tokens <= self.built(course)?.least_context;
        let fit = if fits { self.open(course) } else { self.large_enough(course, tokens) };
        if fit.is_empty() {
            return None;
        }
        if course.rules.health.is_empty() {
            return self.pick(fit, original, course).map(|at| (at, false));
        }
        self.choose_healthy(fit, original, course)
    }

    /// Those whose context holds the request, as far as can be told. An estimate may err: where none is large enough, the
    /// largest is asked rather than none.
    fn large_enough<C>(&mut self, course: &Course<C>, tokens: u64) -> Set {
        let open = self.open(course);
        let context = |at| self.target(course, at).and_then(|target| target.context());
        let small = Set::of(open.iter().filter(|at| context(*at).is_some_and(|size| size < tokens)));
        let fit = open.without(small);
        if small.is_empty() || (fit.is_empty() && !self.has_asked()) {
            let largest = small.iter().max_by_key(|at| (context(*at), std::cmp::Reverse(*at)));
            return if small.is_empty() { fit } else { Set::of(largest.into_iter()) };
        }
        self.leave_out(course, small, Skip::Context);
        fit
    }

    #[cold]
    fn choose_healthy<Req: Describe, C>(
        &mut self,
        fit: Set,
        original: &Req,
        course: &Course<C>,
    ) -> Option<(usize, bool)> {
        let (mut serving, mut busy, mut out) = (Set::default(), Set::default(), Vec::new());
        for at in fit.iter() {
            let Some(target) = self.target(course, at) else { continue };
            let standings = course.rules.health.iter().map(|health| health.standing(target));
            match standings.fold(Standing::Serves, Standing::or) {
                Standing::Serves => serving.insert(at),
                Standing::Busy => busy.insert(at),
                Standing::Out(left) => out.push((left.unwrap_or(Duration::MAX), at)),
            }
        }
        let chosen = if serving.is_empty() { busy } else { serving };
        let Some(at) = self.pick(chosen, original, course) else {
            let first = out.iter().min().map(|(_, at)| (*at, true)).filter(|_| !self.has_asked());
            if first.is_none() {
                for (_, at) in &out {
                    self.tell(course, *at, Skip::Out);
                }
            }
            return first;
        };
        for (_, passed) in out.iter().filter(|(_, passed)| *passed < at) {
            self.tell(course, *passed, Skip::Out);
        }
        if !serving.is_empty() {
            for passed in busy.iter().filter(|passed| *passed < at) {
                self.tell(course, passed, Skip::Busy);
            }
        }
        Some((at, false))
    }

    /// One of these, in the route's order or the call's own.
    fn pick<Req: Describe, C>(&self, among: Set, original: &Req, course: &Course<C>) -> Option<usize> {
        if self.built(course)?.order == Order::Listed && original.overrides().is_none() {
            return among.iter().next();
        }
        self.pick_otherwise(among, original, course)
    }

    fn pick_otherwise<Req: Describe, C>(
        &self,
        among: Set,
        original: &Req,
        course: &Course<C>,
    ) -> Option<usize> {
        let built = self.built(course)?;
        let each = among.iter().filter_map(|at| built.targets.get(at).map(|target| (at, target)));
        if let Some(overrides) = original.overrides().filter(|overrides| overrides.orders()) {
            let place = |target: &Target| overrides.place(target.upstream().name(), target.model());
            let first = each.clone().filter_map(|(at, target)| place(target).map(|place| (place, at))).min();
            if let Some((_, at)) = first {
                return Some(at);
            }
        }
        match built.order {
            Order::Listed => among.iter().next(),
            Order::Weighted => {
                order::weighted(each.map(|(at, target)| (at, target.weight())), fastrand::u64(..))
            }
            Order::Cheapest => {
                let price = |target: &Target| course.rules.price.as_ref()?(target, original.call());
                order::least(each.map(|(at, target)| (at, price(target))))
            }
            Order::Fastest => {
                order::fastest(each.map(|(at, target)| (at, target.pace.get())), fastrand::u64(..))
            }
        }
    }
}
