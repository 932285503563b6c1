//! Pages shown in place of a refused page: missing permission, ended session, request of another
//! site. The input of a refused form is shown, and can be sent again if it holds no secret.

use domain::escape::visible;
use leptos::prelude::*;

use crate::components::title::PageTitle;
use crate::forms::reply::{FormReply, TypedFields};
use crate::session::Refusal;

/// Hidden fields: resent, and not shown.
const UNTYPED: [&str; 3] = ["generation", "id", "item"];

#[component]
pub fn Refused(refusal: Refusal, reply: FormReply) -> impl IntoView {
    match refusal {
        Refusal::Forbidden(permission) if reply.action.is_empty() => forbidden(
            "Your role does not have the permission for this page",
            &permission,
            ().into_any(),
        ),
        Refusal::Forbidden(permission) => forbidden(
            "Nothing was changed: your role does not have the permission",
            &permission,
            typed_fields(&reply.fields),
        ),
        Refusal::SignedOut { sign_in } => signed_out(sign_in, &reply),
        Refusal::FromElsewhere => from_elsewhere(),
    }
}

fn forbidden(title: &'static str, permission: &str, typed: AnyView) -> AnyView {
    view! {
        <PageTitle text=title/>
        <div class="pagehead"><h1>{title}</h1></div>
        <Forbidden permission=permission.to_owned()/>
        {typed}
    }
    .into_any()
}

/// Content of a page that the user may not open.
#[component]
pub fn Forbidden(
    /// The missing permission.
    permission: String,
) -> impl IntoView {
    let permission = permission.replace('_', " ");
    view! {
        <section class="empty">
            <p>"It needs the permission \u{201c}"{permission}"\u{201d}. An admin can grant it under Settings, Users; your roles are under Settings, You."</p>
            <p class="do"><a class="btn" href="/">"Overview"</a><a class="btn" href="/settings">"My roles"</a></p>
        </section>
    }
    .into_any()
}

/// Sign in in another tab and resend from here.
fn signed_out(sign_in: String, reply: &FormReply) -> AnyView {
    let again = if reply.fields.has_secret {
        view! { <p class="small ink2">"Then open the page again and enter it there: secrets are not kept here."</p> }
            .into_any()
    } else {
        send_again(&reply.action, &reply.fields)
    };
    view! {
        <PageTitle text="You are signed out"/>
        <section class="sheet">
            <h1>"Nothing was done: you are signed out"</h1>
            <p>"A session ends after 30 minutes without use, after 12 hours, or when it is ended."</p>
            {typed_fields(&reply.fields)}
            <div class="do"><a class="btn solid" href=sign_in target="_blank" rel="noopener external">"Sign in, in a new tab"</a></div>
            {again}
        </section>
    }
    .into_any()
}

/// A form that another site posted. Its input is not shown, because the user did not type it.
fn from_elsewhere() -> AnyView {
    view! {
        <PageTitle text="Request from another site"/>
        <section class="sheet">
            <h1>"Nothing was done: request from another site"</h1>
            <p>"A page of another site tried to act in your name. The attempt is in the audit log. If you only followed a link, open Leasehold directly."</p>
            <div class="do"><a class="btn solid" href="/">"Overview"</a></div>
        </section>
    }
    .into_any()
}

/// Input of a form that was not executed, for the reader.
pub fn typed_fields(fields: &TypedFields) -> AnyView {
    let is_shown =
        |(name, value): &&(String, String)| !UNTYPED.contains(&name.as_str()) && !value.trim().is_empty();
    let shown = fields.fields.iter().filter(is_shown);
    let rows: Vec<AnyView> = shown
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

/// The same fields, for a form that sends them again.
pub fn hidden_fields(fields: &TypedFields) -> AnyView {
    let hidden = fields.fields.iter().map(|(name, value)| {
        view! { <input r#type="hidden" name=name.clone() value=value.clone()/> }.into_any()
    });
    hidden.collect_view().into_any()
}

pub(crate) fn send_again(action: &str, fields: &TypedFields) -> AnyView {
    view! {
        <form method="post" action=action.to_owned()>
            {hidden_fields(fields)}
            <div class="do"><button class="btn" r#type="submit">"Submit again"</button></div>
        </form>
    }
    .into_any()
}
