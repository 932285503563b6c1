//! Sign-in with name and password or by a one-time link.

use leptos::prelude::*;

use super::field::{Field, alert};
use super::html_document::document;

/// Input of a rejected form; empty at first.
#[derive(Debug, Clone, Default)]
pub struct SignIn {
    pub name: String,
    /// Path to open afterwards, inside the console.
    pub next: String,
    pub refusal: Option<String>,
    /// No user exists yet: explain the setup.
    pub is_unclaimed: bool,
    /// Sign-in at an identity provider, if configured.
    pub provider: Option<Provider>,
}

/// An identity provider: display name and URL.
#[derive(Debug, Clone)]
pub struct Provider {
    pub name: String,
    pub href: String,
}

pub fn sign_in(page: SignIn) -> String {
    let SignIn {
        name,
        next,
        refusal,
        is_unclaimed,
        provider,
    } = page;
    let provider = provider.map(by_provider);
    let name = Field {
        autocomplete: "username",
        ..Field::text("name", "Name", name)
    };
    let password = Field::password("password", "Password", "current-password");
    let unclaimed = is_unclaimed.then(|| {
        view! {
            <p class="notice">
                "No user exists yet. Open the setup link that the server printed at its start to create the first admin. \
                Restart the server for a new link."
            </p>
        }
        .into_any()
    });
    let content = view! {
        <form class="sheet" method="post" action="/sign-in">
            <h1>"Sign in"</h1>
            {unclaimed}
            {alert(refusal)}
            <input r#type="hidden" name="next" value=next/>
            {name.view()}
            {password.view()}
            <div class="do"><button class="btn solid" r#type="submit">"Sign in"</button></div>
            {provider}
        </form>
        <p class="aside">
            "A session ends after 30 minutes without use, and after 12 hours. Every sign-in is in the audit log."
        </p>
    };
    document("Sign in", content.into_any())
}

/// Sign-in at the provider: a link, because it leaves the console.
fn by_provider(provider: Provider) -> AnyView {
    let Provider { name, href } = provider;
    view! {
        <p class="or">"or"</p>
        <div class="do">
            <a class="btn" href=href><span>"Sign in with "<bdi>{name}</bdi></span></a>
        </div>
    }
    .into_any()
}

/// A one-time link was opened: opening it must not use it up, so that the user confirms.
pub fn by_link(link: String, next: String) -> String {
    let content = view! {
        <form class="sheet" method="post" action="/sign-in">
            <h1>"Sign in"</h1>
            <p>"This link signs you in once."</p>
            <input r#type="hidden" name="link" value=link/>
            <input r#type="hidden" name="next" value=next/>
            <div class="do"><button class="btn solid" r#type="submit" autofocus=true>"Sign in"</button></div>
        </form>
    };
    document("Sign in", content.into_any())
}
