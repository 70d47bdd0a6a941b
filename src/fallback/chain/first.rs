//! The first attempt of a call for which nothing has to be weighed. What is the same for all such calls of a route is
//! reckoned once, when the routes are taken.

use std::sync::Arc;

use super::{Chain, Mark, share};
use crate::call::{Aim, Call, Describe, Destination, Misfit, SecretPlaces};
use crate::fallback::order::{Order, Set};
use crate::fallback::routes::Built;
use crate::fallback::target::Target;
use crate::timeout::tokens_of;

/// The first attempt at a route whose targets are asked as they are listed, where no clock and nobody's health matters.
pub(in crate::fallback) struct First {
    target: Arc<Target>,
    /// The largest input that fits every target.
    least_context: u64,
    /// How many attempts the first target may have, and how many are left then.
    share: u32,
    left: u32,
    another_target: bool,
}

impl First {
    /// `None` where each call has to be weighed. `most` is how many attempts a call may make.
    pub(in crate::fallback) fn of(route: &Built, most: u32) -> Option<Self> {
        if route.timed || route.order != Order::Listed {
            return None;
        }
        let target = route.targets.first()?.clone();
        let others = route.all.len() - 1;
        let share = share(most, &target, others);
        let left = most - share;
        let another_target = others > 0 && left > 0;
        Some(Self { target, least_context: route.least_context, share, left, another_target })
    }

    /// Whether nothing of this call has to be weighed either.
    #[inline]
    pub(in crate::fallback) fn is_for<Req: Describe>(&self, request: &Req) -> bool {
        let fits = |call: &Call| {
            let tokens = call.estimate.map_or(0, |estimate| estimate.input_tokens);
            call.most_attempts.is_none() && tokens <= self.least_context
        };
        request.call().is_none_or(fits) && request.overrides().is_none()
    }

    /// Aims the request itself, and gives what is to be kept of it if another target may follow.
    #[inline]
    pub(in crate::fallback) fn aim<Req: Aim + Describe>(
        &self,
        request: &mut Req,
        secrets: &SecretPlaces,
    ) -> Result<Option<Req>, Misfit> {
        let at = Destination { upstream: self.target.upstream(), model: self.target.model(), secrets };
        let original = request.aim_away(&at, self.another_target)?;
        if let Some(call) = request.call_mut() {
            self.mark().write(call);
        }
        Ok(original)
    }

    #[inline]
    fn mark(&self) -> Mark {
        let (another_target, share) = (self.another_target, self.share);
        Mark { another_target, probe: false, failed_elsewhere: false, share, hops: 1 }
    }

    /// The chain of a call that asks it.
    #[inline]
    pub(in crate::fallback) fn chain<R>(&self, route: usize, call: Option<&Call>) -> Chain<R> {
        Chain {
            route,
            current: 0,
            gone: Set::first(1),
            left: self.left,
            hops: 1,
            single: false,
            tokens: tokens_of(call),
            started: None,
            until: None,
            cold: None,
        }
    }
}
