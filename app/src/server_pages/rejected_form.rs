//! A form rejected for its sender or origin: the explanation, and its input.

use domain::escape::visible;
use leptos::prelude::*;

use super::html_document::document;

/// Input of the form, without secrets.
#[derive(Debug, Clone, Default)]
pub struct Typed {
    fields: Vec<(String, String)>,
    /// A secret may have been among it: it must be typed again.
    has_secret: bool,
}

/// Fields that may be repeated. Any other field may be a secret and is left out.
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
    "protection",
    "value1",
    "value2",
    "value3",
];
/// Fields of the rule editor, and the names typed for bulk unlocks.
const REPEATED_PREFIXES: [&str; 3] = ["with.", "line.", "resource-"];

/// Hidden fields: resent, and not shown.
const UNTYPED: [&str; 3] = ["generation", "id", "item"];

impl Typed {
    pub fn new(fields: Vec<(String, String)>) -> Self {
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

    /// A possible secret was left out.
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
            <h2>"Your input"</h2>
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
                <div class="do"><button class="btn" r#type="submit">"Submit again"</button></div>
            </form>
        }
        .into_any()
    }
}

/// The session has ended: sign in in another tab and resend from here.
pub fn signed_out(action: &str, sign_in: &str, typed: &Typed) -> String {
    let again = if typed.has_secret {
        view! { <p class="small ink2">"Then open the page again and enter it there: secrets are not kept here."</p> }
            .into_any()
    } else {
        typed.send_again(action)
    };
    let content = view! {
        <section class="sheet">
            <h1>"Nothing was done: you are signed out"</h1>
            <p>"A session ends after 30 minutes without use, after 12 hours, or when it is ended."</p>
            {typed.view()}
            <div class="do"><a class="btn solid" href=sign_in.to_owned() target="_blank" rel="noopener">"Sign in, in a new tab"</a></div>
            {again}
        </section>
    };
    document("You are signed out", content.into_any())
}

/// Without permission; `right` is its label.
pub fn forbidden(right: &str, typed: &Typed) -> AnyView {
    view! {
        {super::forbidden::forbidden(right)}
        {typed.view()}
    }
    .into_any()
}

/// Posted by another site. Its input is not shown: no user typed it here.
pub fn from_elsewhere() -> String {
    let content = view! {
        <section class="sheet">
            <h1>"Nothing was done: request from another site"</h1>
            <p>"A page of another site tried to act in your name. The attempt is in the audit log. If you only followed a link, open Leasehold directly."</p>
            <div class="do"><a class="btn solid" href="/">"Overview"</a></div>
        </section>
    };
    document("Request from another site", content.into_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_never_repeated_and_input_is_escaped() {
        // A password and a name made of markup; then only a reason, which can be resent
        // unchanged.
        let typed = |fields: &[(&str, &str)]| {
            let owned = fields
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            Typed::new(owned.collect())
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
