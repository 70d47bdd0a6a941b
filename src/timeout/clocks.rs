//! Which clock runs out next: pure, `now` is an argument.

use std::time::Duration;

use crate::refusal::Phase;
use crate::time::{self, Instant};

/// The limits of one call, as instants.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clocks {
    pub(super) total: Option<Instant>,
    pub(super) head: Option<Instant>,
    pub(super) first_content: Option<Instant>,
    pub(super) idle: Option<Duration>,
}

/// How far a response has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its head is not there.
    Waiting,
    /// It has begun, and nothing of an answer has come. Silent since this instant, if it is.
    Begun { silent_since: Option<Instant> },
    /// Content has come.
    Flowing { silent_since: Option<Instant> },
}

impl Clocks {
    /// The clock that runs out first, and when. The earlier phase is named where two run out together.
    pub(super) fn next(&self, stage: Stage) -> Option<(Instant, Phase)> {
        let idle = |since: Option<Instant>| Some((time::checked_add(since?, self.idle?)?, Phase::Idle));
        let named = |at: Option<Instant>, phase| at.map(|at| (at, phase));
        let total = named(self.total, Phase::Total);
        let content = named(self.first_content, Phase::FirstContent);
        let candidates = match stage {
            Stage::Waiting => [named(self.head, Phase::Head), content, total],
            Stage::Begun { silent_since } => [content, idle(silent_since), total],
            Stage::Flowing { silent_since } => [idle(silent_since), total, None],
        };
        // `min_by_key` keeps the first of equals.
        candidates.into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Whether anything is watched once the head is there.
    pub(super) fn watch_body(&self) -> bool {
        self.total.is_some() || self.first_content.is_some() || self.idle.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_has_its_own_clocks() {
        let now = time::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let clocks = Clocks {
            total: Some(at(9)),
            head: Some(at(2)),
            first_content: Some(at(5)),
            idle: Some(Duration::from_secs(1)),
        };
        assert_eq!(clocks.next(Stage::Waiting), Some((at(2), Phase::Head)));
        assert_eq!(clocks.next(Stage::Begun { silent_since: None }), Some((at(5), Phase::FirstContent)));
        assert_eq!(clocks.next(Stage::Begun { silent_since: Some(at(1)) }), Some((at(2), Phase::Idle)));
        assert_eq!(clocks.next(Stage::Flowing { silent_since: None }), Some((at(9), Phase::Total)));
        assert_eq!(clocks.next(Stage::Flowing { silent_since: Some(at(8)) }), Some((at(9), Phase::Idle)));
    }

    #[test]
    fn without_limits_nothing_runs_out() {
        let clocks = Clocks { idle: Some(Duration::MAX), ..Clocks::default() };
        assert_eq!(clocks.next(Stage::Waiting), None);
        assert_eq!(clocks.next(Stage::Flowing { silent_since: Some(time::now()) }), None);
    }
}
