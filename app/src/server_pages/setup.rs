//! First admin: name and password, once, by the link that the server printed. The secret of the
//! link is its fragment, which browsers do not send, so that no proxy logs it. A script moves
//! it into the form; without script, users paste it.

use leptos::prelude::*;

use super::field::{Field, alert};
use super::html_document::document;

/// Moves the fragment into the form, and out of the URL and the history. The page's policy
/// allows it by its hash.
pub const FROM_FRAGMENT: &str = "{const l=document.forms[0].elements.link,h=location.hash.slice(1);if(h&&l.type=='text'){\
    l.value=h;l.parentElement.style.display='none';history.replaceState(null,'',location.pathname)}}";

/// Inputs of the page.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Empty: pasted by the user or filled in by the script.
    pub link: String,
    pub name: String,
    /// The invalid field and its error.
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
        help: Some("Letters, digits and -_.@+; it appears in the audit log."),
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
            help: Some("Printed by the server at its start: the whole link, or the part after the #."),
            ..Field::text("link", "Setup link", link)
        }
        .view()
    } else {
        view! { <input r#type="hidden" name="link" value=link/> }.into_any()
    };
    let content = view! {
        <form class="sheet" method="post" action="/setup">
            <h1>"First admin"</h1>
            <p>"The first admin has every permission and adds other users."</p>
            {alert(refusal)}
            {link}
            {name.view()}
            {password.view()}
            <div class="do"><button class="btn solid" r#type="submit">"Create admin"</button></div>
        </form>
        <script inner_html=FROM_FRAGMENT></script>
    };
    document("Setup", content.into_any())
}

/// The link was used, has expired, or an admin exists already.
pub fn spent() -> String {
    let content = view! {
        <section class="sheet">
            <h1>"Link no longer valid"</h1>
            <p>"It works once, within an hour, and only while there is no admin."</p>
            <div class="do"><a class="btn" href="/sign-in">"Sign in"</a></div>
        </section>
    };
    document("Setup", content.into_any())
}
