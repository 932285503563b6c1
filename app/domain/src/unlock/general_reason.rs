//! Sentences about a forced unlock for readers of a part of its backend: without names of locks, sessions and servers.

use crate::force_release::BlastRadius;

/// In place of a remedy.
pub const GENERAL_REMEDY: &str = "Users with access to the whole backend see the cause.";

/// In place of `why`: a clause by the state of the unlock, or by the code of the refusal.
pub fn general_reason(outcome: &str, why: &str) -> &'static str {
    if why.starts_with(BlastRadius::WIDER) {
        return BlastRadius::WIDER;
    }
    match outcome {
        "released" => "not everything about its end could be read",
        "holder_changed" => "the reviewed grant had ended",
        "refused" => "it was not released",
        "outcome_unknown" => "the result is not known",
        "cancelled" => "it was cancelled",
        "forbidden" => "this step was not permitted",
        "needs_reauthentication" => "this step needs fresh authentication",
        "needs_approval" => "the approval of a second approver is missing",
        "name_mismatch" => "the typed name does not equal the resource",
        "reason_too_weak" => "the reason is too weak",
        "intent_expired" => "the intent had expired",
        "already_used" => "the intent cannot be used again",
        "unlock_unavailable" => "this lock cannot be released by force",
        "backend_stale" => "the backend did not answer",
        "blast_radius_unknown" => "the locks released with it are unknown",
        "audit_unavailable" => "the audit log could not be written",
        _ => "this step was refused",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_general_reason_repeats_no_name() {
        // A refusal that names a lock, the same for a wider blast radius, an outcome of a newer version.
        let named = "it would also release tenant_2:b, which is protected";
        assert_eq!(
            general_reason("needs_approval", named),
            "the approval of a second approver is missing"
        );
        let wider = format!("{}: tenant_2:b", BlastRadius::WIDER);
        assert_eq!(general_reason("refused", &wider), BlastRadius::WIDER);
        assert_eq!(general_reason("newer", named), "this step was refused");
    }
}
