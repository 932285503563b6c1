//! The first admin: name and password, once, by the link that the server printed. The secret of the link is its fragment,
//! which no browser sends: not to us, nor to a proxy and its log. A script moves it into the form; without one, people paste
//! it.

use leptos::prelude::*;

use super::document::document;
use super::field::{Field, alert};

/// Moves the fragment into the form, and out of the address and the history. Its hash is in the policy of the page.
pub const FROM_FRAGMENT: &str = "{const l=document.forms[0].elements.link,h=location.hash.slice(1);if(h&&l.type=='text'){\
    l.value=h;l.parentElement.style.display='none';history.replaceState(null,'',location.pathname)}}";

/// What the page shows.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Empty: people paste it, or the script fills it in.
    pub link: String,
    pub name: String,
    /// Field and what is wrong with it.
    pub fault: Option<(String, String)>,
    pub refusal: Option<String>,
}

pub fn setup(page: Setup) -> String {
    let Setup {
        link,
        name,
        fault,
        refusal,
    } = page;
    let fault_of = |field: &str| {
        fault
            .as_ref()
            .filter(|(name, _)| name == field)
            .map(|(_, why)| why.clone())
    };
    let name = Field {
        autocomplete: "username",
        help: Some("Letters, digits and -_.@+; it stands in every record of what you do."),
        fault: fault_of("name"),
        ..Field::text("name", "Your name", name)
    };
    let password = Field {
        help: Some("At least 12 characters; several words make a good one."),
        fault: fault_of("password"),
        ..Field::password("password", "Password", "new-password")
    };
    let link = if link.is_empty() {
        Field {
            help: Some(
                "The one that the server printed when it started: the whole of it, or what is after the #.",
            ),
            ..Field::text("link", "Setup link", link)
        }
        .view()
    } else {
        view! { <input r#type="hidden" name="link" value=link/> }.into_any()
    };
    let content = view! {
        <form class="sheet" method="post" action="/setup">
            <h1>"The first admin"</h1>
            <p>"You will be able to do everything, and to add others."</p>
            {alert(refusal)}
            {link}
            {name.view()}
            {password.view()}
            <div class="do"><button class="btn solid" r#type="submit">"Begin"</button></div>
        </form>
        <script inner_html=FROM_FRAGMENT></script>
    };
    document("Setup", content.into_any())
}

/// The link was used, is too old, or there is an admin already.
pub fn spent() -> String {
    let content = view! {
        <section class="sheet">
            <h1>"This link does not work any more"</h1>
            <p>"It works once, within an hour, and only while there is no admin."</p>
            <div class="do"><a class="btn" href="/sign-in">"Sign in"</a></div>
        </section>
    };
    document("Setup", content.into_any())
}
