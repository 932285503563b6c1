//! One user: grants, sign-in method, active API tokens, removal.

use leptos::prelude::*;
use leptos_router::hooks::use_params_map;

use super::TOPICS;
use super::grants::{GrantRows, grant_list};
use super::secret_panel::{SECRET, SecretPanel};
use crate::components::fact_list::Facts;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::relative_time::age;
use crate::components::title::PageTitle;
use crate::forms::console_form::{ConsoleForm, FormAlert, FormState};
use crate::forms::field::SubmitButton;
use crate::layout::SettingsLayout;
use crate::live::use_live;
use crate::pages::settings::data::{UserData, UserToken, user};

#[component]
pub fn UserPage() -> impl IntoView {
    let params = use_params_map();
    // During navigation the page outlives its URL for a moment.
    let id = Memo::new(move |before: Option<&String>| {
        let id = params.read().get("id");
        id.or_else(|| before.cloned()).unwrap_or_default()
    });
    let load = use_live().refreshing(TOPICS, move || id.get(), user);
    view! {
        <PageTitle text="User"/>
        <div class="page">
            <LiveBar/>
            <LoadBoundary load shows=TOPICS let:data>
                <Body data/>
            </LoadBoundary>
        </div>
    }
}

/// Path of a form of this user.
fn action(id: &str, act: &str) -> String {
    format!("/settings/users/{id}/{act}")
}

#[component]
fn Body(data: Signal<UserData>) -> impl IntoView {
    let id = data.with_untracked(|data| data.id.clone());
    let link = FormState::of_action(&action(&id, "link"));
    let roles = FormState::of_action(&action(&id, "grants"));
    let name = Memo::new(move |_| data.with(|data| data.name.clone()));
    let secret = Memo::new(move |_| link.value(SECRET));
    let is_disabled = Memo::new(move |_| data.with(|data| data.disabled_at.is_some()));
    let is_managed = Memo::new(move |_| data.with(|data| data.is_managed));
    let grants = Memo::new(move |_| data.with(|data| data.grants.clone()));
    let first_grants = grants.get_untracked();
    let roles_form = move || {
        if is_managed.get() {
            return managed(data);
        }
        // Changed grants, by a save or by another admin, replace the values of the form, also after a refused save. Otherwise a
        // later save would restore a revoked grant.
        if grants.with(|grants| *grants != first_grants) {
            roles.clear();
        }
        untrack(|| grants_form(data, roles))
    };
    view! {
        <div class="pagehead"><h1>{move || if is_disabled.get() { format!("{} is disabled", name.get()) } else { name.get() }}</h1></div>
        <SettingsLayout>
            <p><a class="link" href="/settings/users">"All users"</a></p>
            {changing(move || secret.get().map(|secret| view! {
                <SecretPanel state=link title=format!("Sign-in link for {}", name.get_untracked()) secret
                    note="Valid once, within an hour; earlier links of the user stop working."/>
            }.into_any()))}
            {changing(move || data.with(facts))}
            <section class="sec">
                <header><h2>"Roles"</h2></header>
                {changing(roles_form)}
            </section>
            <ActiveTokens data/>
            <div class="acts">{changing(move || {
                let is_disabled = is_disabled.get();
                untrack(|| action_forms(data, is_disabled, link))
            })}</div>
        </SettingsLayout>
    }
    .into_any()
}

fn facts(data: &UserData) -> AnyView {
    let cells = vec![
        ("added", age(Some(data.created_at), data.now, "")),
        ("signs in by", data.sign_in_method.clone().into_any()),
        ("sessions now", data.sessions.to_string().into_any()),
    ];
    view! { <Facts cells/> }.into_any()
}

/// Tokens that stay valid when the user is disabled.
#[component]
fn ActiveTokens(data: Signal<UserData>) -> impl IntoView {
    let tokens = Signal::derive(move || data.with(|data| data.active_tokens.clone()));
    let is_empty = Memo::new(move |_| tokens.with(Vec::is_empty));
    changing(move || {
        if is_empty.get() {
            return ().into_any();
        }
        view! {
            <section class="sec">
                <header><h2>"Active API tokens"</h2></header>
                <p class="ink2">"Created by this user, directly or through tokens and links. They work until they are revoked or expire, also while the user is disabled. Revoking one ends the tokens, sign-in links and sessions that came from it too."</p>
                <div class="scroll">
                    <table class="t st-table">
                        <thead><tr><th scope="col">"name"</th><th scope="col"><span class="sr">"action"</span></th></tr></thead>
                        <tbody>
                            <For each=move || tokens.get() key=|token| token.id.clone() let:token>
                                <TokenRow token/>
                            </For>
                        </tbody>
                    </table>
                </div>
            </section>
        }
        .into_any()
    })
}

#[component]
fn TokenRow(token: UserToken) -> impl IntoView {
    let UserToken { id, name } = token;
    let label = format!("Revoke {name}");
    view! {
        <tr>
            <th scope="row">{name}</th>
            <td class="num">
                <ConsoleForm action=format!("/settings/tokens/{id}/revoke") stays=true>
                    <FormAlert/>
                    <SubmitButton class="btn s" aria_label=label>"Revoke"</SubmitButton>
                </ConsoleForm>
            </td>
        </tr>
    }
    .into_any()
}

fn managed(data: Signal<UserData>) -> AnyView {
    view! {
        <p class="ink2">"The identity provider sets their roles at each sign-in."</p>
        {changing(move || data.with(|data| grant_list(&data.grants)))}
    }
    .into_any()
}

fn grants_form(data: Signal<UserData>, state: FormState) -> AnyView {
    let UserData {
        id, grants, backends, ..
    } = data.get_untracked();
    view! {
        <ConsoleForm action=action(&id, "grants") stays=true state>
            <FormAlert/>
            <GrantRows grants backends/>
            <div class="do"><SubmitButton>"Save roles"</SubmitButton></div>
        </ConsoleForm>
    }
    .into_any()
}

fn action_forms(data: Signal<UserData>, is_disabled: bool, link: FormState) -> AnyView {
    let (id, is_self) = data.with_untracked(|data| (data.id.clone(), data.is_self));
    // None for oneself, nor for the provider's users, who sign in there.
    let has_links = data.with_untracked(|data| !data.is_self && !data.is_managed);
    if is_disabled {
        return action_form(
            "Enable",
            "Restores sign-in and roles.",
            action(&id, "enable"),
            None,
        );
    }
    let warning = if is_self {
        "This is you: you will be signed out at once."
    } else {
        "Their sessions end at once. Their API tokens and audit entries remain."
    };
    let link_form = || {
        let purpose = "For a new user or a forgotten password.";
        action_form("Create a sign-in link", purpose, action(&id, "link"), Some(link))
    };
    view! {
        {has_links.then(link_form)}
        {action_form("Disable", warning, action(&id, "disable"), None)}
    }
    .into_any()
}

fn action_form(
    label: &'static str,
    consequence: &'static str,
    action: String,
    state: Option<FormState>,
) -> AnyView {
    let state = state.unwrap_or_else(|| FormState::of_action(&action));
    view! {
        <ConsoleForm class="act" action=action stays=true state>
            <FormAlert/>
            <p>{consequence}</p>
            <SubmitButton class="btn">{label}</SubmitButton>
        </ConsoleForm>
    }
    .into_any()
}
