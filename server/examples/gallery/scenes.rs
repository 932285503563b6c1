//! Which data the gallery shows: the locks of each scene, and how its backends answer.

use domain::backend::BackendStatus;
use domain::waits::identity::IdentityRule;

use crate::deadlock;
use crate::locks::{self, CannedLock};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scene {
    Full,
    /// 50,000 locks.
    Many,
    /// Every backend answers, and no lock is held.
    Empty,
    /// No backend answers.
    Down,
    /// Just started: nothing observed yet.
    Starting,
    /// Locks are held, and none needs attention.
    Calm,
    /// No backend is configured.
    Unconfigured,
    /// Three owners wait for each other across three backends.
    Deadlock,
}

impl Scene {
    pub(crate) const NAMES: [&'static str; 8] = [
        "full",
        "many",
        "empty",
        "down",
        "starting",
        "calm",
        "unconfigured",
        "deadlock",
    ];

    pub(crate) fn parse(name: &str) -> Option<Self> {
        let scenes = [
            Self::Full,
            Self::Many,
            Self::Empty,
            Self::Down,
            Self::Starting,
            Self::Calm,
            Self::Unconfigured,
            Self::Deadlock,
        ];
        Self::NAMES
            .iter()
            .position(|known| *known == name)
            .map(|at| scenes[at])
    }

    /// Status of a backend that has `full_scene_status` in the full scene; `None` where it is not configured.
    pub(crate) fn status(self, full_scene_status: BackendStatus) -> Option<BackendStatus> {
        match self {
            Self::Full => Some(full_scene_status),
            Self::Many => (full_scene_status == BackendStatus::Live).then_some(full_scene_status),
            Self::Empty | Self::Calm | Self::Deadlock => Some(BackendStatus::Live),
            Self::Down => Some(BackendStatus::Down),
            Self::Starting => Some(BackendStatus::Starting),
            Self::Unconfigured => None,
        }
    }

    /// Rules that recognize the same owner on different backends.
    pub(crate) fn identity_rules(self) -> Vec<IdentityRule> {
        let rule = (self == Self::Deadlock).then(deadlock::identity_rule);
        rule.flatten().into_iter().collect()
    }

    pub(crate) fn locks(self) -> Vec<CannedLock> {
        match self {
            Self::Full | Self::Many => locks::all(),
            Self::Down => locks::all()
                .into_iter()
                .filter(|lock| lock.backend == "etcd-coord")
                .collect(),
            Self::Calm => locks::all().into_iter().filter(CannedLock::is_calm).collect(),
            Self::Deadlock => deadlock::locks(),
            Self::Empty | Self::Starting | Self::Unconfigured => Vec::new(),
        }
    }
}
