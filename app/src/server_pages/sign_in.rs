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
    /// No admin exists yet: explain the setup.
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
                "No admin exists yet. Open the setup link that the server printed at its start to create the first admin. \
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

/// Page of a one-time link. A button uses the link, because programs that only open it (previews) must not use it up.
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

/// A one-time link that is not valid, and the ways to another.
#[derive(Debug, Clone, Default)]
pub struct SpentLink {
    /// Prints another link, on the server's machine.
    pub command: String,
    /// How to adapt the command.
    pub hint: Option<&'static str>,
    /// This browser has a session already.
    pub is_signed_in: bool,
}

/// The link was used or replaced, or has expired.
pub fn spent_link(page: SpentLink) -> String {
    let SpentLink {
        command,
        hint,
        is_signed_in,
    } = page;
    let (href, label) = if is_signed_in {
        ("/", "Open the console")
    } else {
        ("/sign-in", "Sign in with a password")
    };
    let signed_in =
        is_signed_in.then(|| view! { <p class="notice">"You are signed in already."</p> }.into_any());
    let hint = hint.map(|hint| view! { <p class="help">{hint}</p> }.into_any());
    let content = view! {
        <section class="sheet">
            <h1>"Link no longer valid"</h1>
            {signed_in}
            <p>
                "A sign-in link works once, within an hour, and a newer link replaces it. This one is used or expired."
            </p>
            <p>"For another link, run this on the server's machine:"</p>
            <pre tabindex="0"><code>{command}</code></pre>
            {hint}
            <p>"Or ask an admin: Settings, Users, your name, Create a sign-in link."</p>
            <div class="do"><a class="btn" href=href>{label}</a></div>
        </section>
    };
    document("Link no longer valid", content.into_any())
}
