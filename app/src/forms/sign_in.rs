//! Signing in, by name and password or by a one-time link.

use leptos::prelude::*;

use super::document::document;
use super::field::{Field, alert};

/// What the page shows; empty at first.
#[derive(Debug, Clone, Default)]
pub struct SignIn {
    pub name: String,
    /// Where to go on afterwards, a path of ours.
    pub next: String,
    pub refusal: Option<String>,
    /// Nobody can sign in yet: say how the first one can.
    pub is_unclaimed: bool,
    /// The other way in, where there is one.
    pub provider: Option<Provider>,
}

/// An identity provider: what people call it, and where it is asked.
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
                "Nobody can sign in yet. The server printed a setup link when it started; whoever opens it makes the first \
                admin. Start it again for a new one."
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
            "A session ends after 30 minutes without use, and after 12 hours. Every sign-in stands in the audit record."
        </p>
    };
    document("Sign in", content.into_any())
}

/// The other way in: a link, because it leads away from here.
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

/// A link was opened: looking at it must not use it up, so that the person says so.
pub fn by_link(link: String, next: String) -> String {
    let content = view! {
        <form class="sheet" method="post" action="/sign-in">
            <h1>"Sign in"</h1>
            <p>"This link signs you in, once."</p>
            <input r#type="hidden" name="link" value=link/>
            <input r#type="hidden" name="next" value=next/>
            <div class="do"><button class="btn solid" r#type="submit" autofocus=true>"Go on"</button></div>
        </form>
    };
    document("Sign in", content.into_any())
}
