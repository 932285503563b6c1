//! A forced unlock as one principal may see it. Casualties outside its scope are counted and not named, and sentences that
//! could name them are general ones.
//!
//! **Invariant:** pages and the API show a [`VisibleUnlock`]; no operation takes one.

use domain::access::Permission;
use domain::force_release::{BlastRadius, Casualty, CasualtyKind};
use domain::lease::Scope;
use domain::names::BackendName;
use domain::quorum::{Quorum, node_number};
use domain::unlock::{EndedHolding, GENERAL_REMEDY, Unlock, UnlockState, general_reason};

use super::{UnlockError, seen_by};
use crate::identity::Principal;

#[derive(Debug, Clone)]
pub struct VisibleUnlock(Unlock);

impl VisibleUnlock {
    pub fn new(mut unlock: Unlock, who: &Principal) -> Self {
        let scope = who.scope_on(Permission::View, &unlock.backend);
        unlock.protection_reason = seen_by(who, &unlock.backend, unlock.protection_reason.take());
        if !scope.is_everything() {
            let radius = std::mem::take(&mut unlock.observed.blast_radius);
            unlock.observed.blast_radius = limit_radius(radius, &scope);
            unlock.observed.quorum = unlock.observed.quorum.map(Quorum::limited);
            let ending = std::mem::take(&mut unlock.ending);
            unlock.ending = limit_ending(ending, unlock.state);
        }
        Self(unlock)
    }

    pub fn into_inner(self) -> Unlock {
        self.0
    }
}

/// Replaces sentences, which could contain names of others and addresses.
fn limit_ending(mut ending: EndedHolding, state: UnlockState) -> EndedHolding {
    let why = ending.why.take();
    ending.why = why.map(|why| general_reason(state.as_str(), &why).to_owned());
    let remedy = ending.remedy.take();
    ending.remedy = remedy.map(|_| GENERAL_REMEDY.to_owned());
    for (index, node) in ending.nodes.iter_mut().enumerate() {
        node.node = node_number(index);
        node.why = None;
    }
    ending
}

/// Replaces locks and keys outside the scope by their number. Descriptions of sessions and transactions could
/// contain such names and are replaced too.
pub(super) fn limit_radius(mut radius: BlastRadius, scope: &Scope) -> BlastRadius {
    if scope.is_everything() {
        return radius;
    }
    let is_visible = |casualty: &Casualty| match casualty.kind {
        CasualtyKind::Lock | CasualtyKind::Key => {
            let name = casualty.resource.as_ref();
            name.map_or_else(
                || scope.covers(&casualty.what),
                |name| scope.covers_bytes(name.as_bytes()),
            )
        }
        CasualtyKind::Session | CasualtyKind::Transaction => true,
    };
    for casualty in &mut radius.dies {
        if let Some(text) = casualty.kind.general_text() {
            text.clone_into(&mut casualty.what);
        }
    }
    let all = radius.dies.len();
    radius.dies.retain(is_visible);
    let hidden = all - radius.dies.len();
    if hidden > 0 {
        let locks = domain::format::counted(hidden as u64, "lock", "locks");
        radius.add(CasualtyKind::Lock, format!("{locks} outside of your scope"));
    }
    radius
}

impl UnlockError {
    /// Removes the error text of a backend that the principal may see only in part.
    pub(super) fn limited(self, who: &Principal, backend: &BackendName) -> Self {
        if who.scope_on(Permission::View, backend).is_everything() {
            return self;
        }
        match self {
            Self::Stale { .. } => Self::Stale {
                why: format!("{backend} does not answer: which of its locks are held is unknown"),
                remedy: Some(format!("Try again when the backend is live. {GENERAL_REMEDY}")),
            },
            other => other,
        }
    }
}
