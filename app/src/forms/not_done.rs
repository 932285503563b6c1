//! A form that was not taken, because of who sent it or from where: what that means, and what was typed.

use domain::escape::visible;
use leptos::prelude::*;

use super::document::document;

/// What was typed, without what must not be shown again.
#[derive(Debug, Clone, Default)]
pub struct Typed {
    fields: Vec<(String, String)>,
    /// What may be a secret was among it: it is typed again, never repeated.
    has_secret: bool,
}

/// Fields that may be repeated. Any other field may hold a secret, and is left out.
const REPEATED: [&str; 36] = [
    "act",
    "any_prefix",
    "backend",
    "backends",
    "breakGlassReason",
    "comment",
    "condition",
    "days",
    "enabled",
    "for",
    "generation",
    "group_by",
    "id",
    "item",
    "keep_firing_for",
    "kind",
    "label1",
    "label2",
    "label3",
    "lasts",
    "name",
    "note",
    "owner",
    "prefix",
    "reason",
    "receivers",
    "resource",
    "role",
    "runbook",
    "safety",
    "severity",
    "template",
    "tier",
    "value1",
    "value2",
    "value3",
];
/// Parts of the rule editor, and the names typed for several unlocks.
const REPEATED_PREFIXES: [&str; 3] = ["with.", "line.", "resource-"];

/// Fields that a page filled in by itself: sent again, and nothing to read.
const UNTYPED: [&str; 3] = ["generation", "id", "item"];

impl Typed {
    pub fn of(fields: Vec<(String, String)>) -> Self {
        let all = fields.len();
        let mut fields = fields;
        fields.retain(|(name, _)| {
            REPEATED.contains(&name.as_str()) || REPEATED_PREFIXES.iter().any(|start| name.starts_with(start))
        });
        Self {
            has_secret: fields.len() < all,
            fields,
        }
    }

    /// Something was left out of it.
    pub(super) fn has_secret(&self) -> bool {
        self.has_secret
    }

    pub(super) fn view(&self) -> AnyView {
        let is_shown =
            |(name, value): &&(String, String)| !UNTYPED.contains(&name.as_str()) && !value.trim().is_empty();
        let typed = self.fields.iter().filter(is_shown);
        let rows: Vec<AnyView> = typed
            .map(|(name, value)| {
                view! {
                    <dt>{visible(name).into_owned()}</dt>
                    <dd><bdi>{visible(value).into_owned()}</bdi></dd>
                }
                .into_any()
            })
            .collect();
        if rows.is_empty() {
            return ().into_any();
        }
        view! {
            <h2>"What you sent"</h2>
            <dl class="sent">{rows}</dl>
        }
        .into_any()
    }

    /// The same fields, for another form.
    pub(super) fn hidden(&self) -> AnyView {
        let fields = self.fields.iter();
        let hidden = fields.map(|(name, value)| {
            view! { <input r#type="hidden" name=name.clone() value=value.clone()/> }
        });
        hidden.collect_view().into_any()
    }

    pub(super) fn send_again(&self, action: &str) -> AnyView {
        view! {
            <form method="post" action=action.to_owned()>
                {self.hidden()}
                <div class="do"><button class="btn" r#type="submit">"I am signed in: send it again"</button></div>
            </form>
        }
        .into_any()
    }
}

/// Whoever sent it is not signed in any more: they sign in beside this page, and send it again from here.
pub fn signed_out(action: &str, sign_in: &str, typed: &Typed) -> String {
    let again = if typed.has_secret {
        view! { <p class="small ink2">"Then open the page again and enter it there: what may be secret is not kept here."</p> }
            .into_any()
    } else {
        typed.send_again(action)
    };
    let content = view! {
        <section class="sheet">
            <h1>"Nothing was done: you are signed out"</h1>
            <p>"A session ends after 30 minutes without use, after 12 hours, or when somebody ends it."</p>
            {typed.view()}
            <div class="do"><a class="btn solid" href=sign_in.to_owned() target="_blank" rel="noopener">"Sign in, in a new tab"</a></div>
            {again}
        </section>
    };
    document("You are signed out", content.into_any())
}

/// Without the right. `right` is its word.
pub fn forbidden(right: &str, typed: &Typed) -> AnyView {
    view! {
        {super::forbidden::forbidden(right)}
        {typed.view()}
    }
    .into_any()
}

/// Another site's page sent it. What it sent is not shown: it is not what anybody typed here.
pub fn from_elsewhere() -> String {
    let content = view! {
        <section class="sheet">
            <h1>"Nothing was done: another site sent this"</h1>
            <p>"A page that is not Leasehold's tried to do something in your name. It is in the audit record. If you only followed a link, open Leasehold itself."</p>
            <div class="do"><a class="btn solid" href="/">"Overview"</a></div>
        </section>
    };
    document("Another site sent this", content.into_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_is_never_repeated_and_what_was_typed_is_escaped() {
        // A password beside a name made of markup; then a reason alone, which can be sent again as it was.
        let typed = |fields: &[(&str, &str)]| {
            let owned = fields
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            Typed::of(owned.collect())
        };
        for secret in [
            "password",
            "old",
            "urls",
            "secret",
            "link",
            "apiKey",
            "anything else",
            "Name",
        ] {
            let with_secret = typed(&[(secret, "hunter22"), ("name", "<b>ada</b>")]);
            let html = signed_out("/settings/you", "/sign-in", &with_secret);
            assert!(
                !html.contains("hunter22") && !html.contains("<b>ada") && !html.contains("<form"),
                "{secret}: {html}"
            );
            assert!(html.contains("&lt;b&gt;ada"), "{secret}: {html}");
        }
        let html = signed_out(
            "/unlock/b/r",
            "/sign-in",
            &typed(&[("reason", "the \"holder\" is gone")]),
        );
        assert!(
            html.contains("action=\"/unlock/b/r\"") && html.contains("the &quot;holder&quot; is gone"),
            "{html}"
        );
    }
}
