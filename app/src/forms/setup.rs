//! The first admin: name and password, once, by the link that the server printed.

use leptos::prelude::*;

use super::document::document;
use super::field::{Field, alert};

/// What the page shows.
#[derive(Debug, Clone, Default)]
pub struct Setup {
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
    let content = view! {
        <form class="sheet" method="post" action="/setup">
            <h1>"The first admin"</h1>
            <p>"You will be able to do everything, and to add others."</p>
            {alert(refusal)}
            <input r#type="hidden" name="link" value=link/>
            {name.view()}
            {password.view()}
            <div class="do"><button class="btn solid" r#type="submit">"Begin"</button></div>
        </form>
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
