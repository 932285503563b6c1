//! Rule editor: the form, a preview that follows it, and the versions of the rule.

pub mod chart;
pub mod data;
pub mod form;
pub mod newest_firing;
pub mod preview;
pub mod threshold_line;
pub mod versions;

use std::time::Duration;

use domain::alerts::ConditionKind;
use leptos::ev::Event;
use leptos::leptos_dom::helpers::debounce;
use leptos::prelude::*;
use leptos_router::hooks::{use_location, use_params_map};
use wasm_bindgen::JsCast;
use web_sys::HtmlFormElement;

use self::chart::highest_measure;
use self::data::{NO_SUCH_RULE, PreviewPart, RuleEditorData, RulePreview, rule, rule_preview};
use self::form::{Pick, RuleForm};
use self::preview::PreviewView;
use self::threshold_line::ThresholdLine;
use self::versions::Versions;
use crate::api::ApiError;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::title::PageTitle;
use crate::console::ConsoleError;
use crate::forms::console_form::FormState;
use crate::forms::reply::FormReply;
use crate::forms::submit;
use crate::links;
use crate::live::resource::Load;
use crate::live::topics::Topics;
use crate::live::use_live;

/// Path that the form is sent to.
pub const ACTION: &str = "/alerts/rules";
const FORM_ID: &str = "rule";
/// Pause in typing after which the preview is computed again.
const TYPING_PAUSE: Duration = Duration::from_millis(300);

/// The preview's request: the form as a query string; empty: as the page opened.
#[derive(Clone, Copy)]
pub struct PreviewRequest {
    fields: RwSignal<String>,
    /// A preview of these fields is being computed.
    is_pending: RwSignal<bool>,
    /// While the user types, only the newest part of the preview is requested, because it is fast.
    is_newest: RwSignal<bool>,
    /// Highest value or threshold of each part so far: the scale does not shrink below a line that is being dragged.
    scale: StoredValue<Vec<(String, i64)>>,
    line: ThresholdLine,
    /// Version that the preview is compared with.
    saved: RwSignal<Option<i64>>,
}

impl PreviewRequest {
    fn new(fields: String) -> Self {
        Self {
            fields: RwSignal::new(fields),
            is_pending: RwSignal::new(false),
            is_newest: RwSignal::new(false),
            scale: StoredValue::new(Vec::new()),
            line: ThresholdLine::default(),
            saved: RwSignal::new(None),
        }
    }

    /// Resets the request for another rule, whose first preview is that of the URL.
    fn reset(self) {
        self.is_newest.set(false);
        self.scale.set_value(Vec::new());
        self.fields.set(String::new());
        self.line.reset();
    }

    /// Records the response to `fields`. After a preview of the newest part, requests the complete one.
    fn record_response(self, fields: &str, preview: &Result<RulePreview, ApiError>) {
        // The server renders one preview and sends no further request.
        if cfg!(feature = "ssr") || self.fields.try_with_untracked(|now| now == fields) != Some(true) {
            return;
        }
        let edited = preview.as_ref().ok().and_then(|preview| preview.edited.as_ref());
        let is_partial = edited.is_some_and(|edited| edited.is_partial);
        if !is_partial {
            self.is_pending.try_set(false);
        }
        // Runs after the response has become the page's data.
        let arrived = move || {
            self.line.arrived();
            if is_partial {
                self.is_newest.try_set(false);
            }
        };
        set_timeout(arrived, Duration::ZERO);
    }

    /// Computes the preview again when another version is saved, although the form has not changed since.
    fn follow_saved(self, preview: Load<RulePreview>) {
        Effect::new(move |before: Option<Option<i64>>| {
            let now = self.saved.get();
            if before.flatten().is_some() && before != Some(now) && now.is_some() {
                preview.refetch();
            }
            now
        });
    }

    /// Requests the preview of the form as it is.
    fn follow_form(self) {
        // By its id, because the threshold line belongs to the form but is outside of its element.
        let form = document()
            .get_element_by_id(FORM_ID)
            .and_then(|form| form.dyn_into::<HtmlFormElement>().ok());
        let Some(form) = form else { return };
        let next = to_search(submit::fields(&form));
        let is_changed = self.fields.try_with_untracked(|fields| *fields != next) == Some(true);
        if is_changed {
            self.is_pending.try_set(true);
            self.is_newest.try_set(true);
            self.fields.try_set(next);
        }
        self.line.requested(!is_changed);
    }

    fn highest(self, part: &PreviewPart) -> i64 {
        let now = highest_measure(part).max(part.threshold.unwrap_or(0));
        let grow = |scale: &mut Vec<(String, i64)>| {
            let before = scale.iter_mut().find(|(param, _)| *param == part.param);
            let Some((_, highest)) = before else {
                scale.push((part.param.clone(), now));
                return now;
            };
            *highest = now.max(*highest);
            *highest
        };
        self.scale.try_update_value(grow).unwrap_or(now)
    }
}

#[component]
pub fn RuleEditorPage() -> impl IntoView {
    let (params, location) = (use_params_map(), use_location());
    // During navigation the page outlives its URL for a moment.
    let address = Memo::new(move |before: Option<&(String, String)>| match before {
        Some(before) if !location.pathname.with(|path| path.starts_with(ACTION)) => before.clone(),
        _ => (params.read().get("id").unwrap_or_default(), location.search.get()),
    });
    let form = FormState::of_action(ACTION);
    let refused_fields = form
        .first_reply()
        .map(|reply| reply.fields.fields)
        .unwrap_or_default();
    let request = PreviewRequest::new(to_search(refused_fields));
    Effect::new(move |before: Option<(String, String)>| {
        let now = address.get();
        if before.is_some_and(|before| before != now) {
            request.reset();
            form.clear();
        }
        now
    });
    // As last read; `None` before the page is hydrated.
    let last_read = StoredValue::new(None::<RuleEditorData>);
    let load = load_rule(address, last_read);
    // The form was refused because the rule was removed: fetches the data again, which is then that of a new rule.
    Effect::new(move |_| {
        if is_refused_as_removed(form.reply().as_ref()) {
            load.refetch();
        }
    });
    let may_preview = crate::session::use_session()
        .with_untracked(|session| session.may(domain::access::Permission::Administer));
    let preview = may_preview.then(|| {
        let question = move || {
            let (id, search) = address.get();
            let part = if request.is_newest.get() { "newest" } else { "" };
            (id, search, request.fields.get(), part.to_owned())
        };
        let load = use_live().refreshing(
            Topics::NONE,
            question,
            move |(id, search, fields, part)| async move {
                let preview = rule_preview(id, search, fields.clone(), part).await;
                request.record_response(&fields, &preview);
                preview
            },
        );
        request.follow_saved(load);
        let line = request.line;
        line.on_release(move || request.follow_form());
        view! {
            <div class="re-preview" on:pointerdown=move |event| line.hold(&event) on:input=move |event| line.follow(&event) on:change=on_input(request)>
                <LoadBoundary load part=true let:data>
                    <PreviewView data request/>
                </LoadBoundary>
            </div>
        }
        .into_any()
    });
    view! {
        <div class="page re">
            <LiveBar/>
            <LoadBoundary load shows=Topics::ALERTS let:data>
                <Body data form request last_read/>
            </LoadBoundary>
            {preview}
        </div>
    }
    .into_any()
}

fn load_rule(
    address: Memo<(String, String)>,
    last_read: StoredValue<Option<RuleEditorData>>,
) -> Load<RuleEditorData> {
    use_live().refreshing(
        Topics::ALERTS,
        move || address.get(),
        move |(id, search): (String, String)| async move {
            let read = rule(id.clone(), search).await;
            let last = last_read.try_get_value().flatten();
            unless_removed(read, last.filter(|last| last.id == id))
        },
    )
}

/// If the rule is removed while its page is open, returns the last data as a new rule: the form keeps its input.
fn unless_removed(
    read: Result<RuleEditorData, ApiError>,
    last: Option<RuleEditorData>,
) -> Result<RuleEditorData, ApiError> {
    match (read, last) {
        (Err(ApiError::Console(ConsoleError::NotFound { what })), Some(last))
            if what == NO_SUCH_RULE && last.may_edit =>
        {
            Ok(RuleEditorData {
                id: String::new(),
                version: None,
                saved: Vec::new(),
                versions: Vec::new(),
                firing: 0,
                is_removed: true,
                ..last
            })
        }
        (read, _) => read,
    }
}

/// The form was sent for a rule that was removed.
fn is_refused_as_removed(reply: Option<&FormReply>) -> bool {
    reply.is_some_and(|reply| reply.status == 404)
}

fn to_search(fields: Vec<(String, String)>) -> String {
    links::with_query("", fields)
}

/// Follows the form while the reader types, and the threshold line while it moves by keyboard.
fn on_input(request: PreviewRequest) -> impl FnMut(Event) + 'static {
    let mut follow = debounce(TYPING_PAUSE, move |()| request.follow_form());
    move |_: Event| follow(())
}

#[component]
fn Body(
    data: Signal<RuleEditorData>,
    form: FormState,
    request: PreviewRequest,
    last_read: StoredValue<Option<RuleEditorData>>,
) -> impl IntoView {
    Effect::new(move |_| {
        let data = data.get();
        request.saved.set(data.version);
        if !data.is_removed {
            last_read.try_set_value(Some(data));
        }
    });
    let title = Memo::new(move |_| data.with(title));
    let lead = Memo::new(move |_| data.with(lead));
    // The form is rebuilt for another rule or version only: what is typed stays.
    let subject = Memo::new(move |_| {
        data.with(|data| {
            (
                data.id.clone(),
                data.version,
                data.condition.clone(),
                data.fields.clone(),
            )
        })
    });
    let versions = Memo::new(move |_| data.with(|data| (data.id.clone(), data.versions.clone())));
    let main = move || {
        subject.with(|_| ());
        let data = data.get_untracked();
        match ConditionKind::parse(&data.condition) {
            Some(kind) => {
                view! { <div on:input=on_input(request)><RuleForm data kind form/></div> }.into_any()
            }
            None => view! { <Pick data/> }.into_any(),
        }
    };
    view! {
        <PageTitle text=move || title.get()/>
        <div class="pagehead">
            <div>
                <p class="small crumbs"><a class="link" href="/alerts">"Alerts"</a>" / "<a class="link" href="/alerts#rules">"Rules"</a>" /"</p>
                <h1>{move || title.get()}</h1>
                <p>{move || lead.get()}</p>
            </div>
        </div>
        <div class="re-form stack">
            {changing(main)}
            {changing(move || versions.with(|(id, all)| view! { <Versions id=id.clone() all=all.clone()/> }.into_any()))}
        </div>
    }
    .into_any()
}

fn field<'a>(fields: &'a [(String, String)], name: &str) -> &'a str {
    let found = fields.iter().find(|(field, _)| field == name);
    found.map_or("", |(_, value)| value.as_str())
}

fn title(data: &RuleEditorData) -> String {
    match (field(&data.fields, "name"), ConditionKind::parse(&data.condition)) {
        ("", Some(kind)) => kind.info().title.to_owned(),
        ("", None) => "New rule".to_owned(),
        (name, _) => name.to_owned(),
    }
}

fn lead(data: &RuleEditorData) -> String {
    let firing = match data.firing {
        0 => "It does not fire now.".to_owned(),
        1 => "It fires now for 1 lock, prefix or backend.".to_owned(),
        count => format!("It fires now for {count} locks, prefixes or backends."),
    };
    match data.version {
        Some(version) => format!("Rule, version {version}. {firing} Changes apply when saved."),
        None => "Preview the rule on past data before you save it.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_removed_while_open_becomes_a_new_one() {
        let last = RuleEditorData {
            id: "long_held".to_owned(),
            version: Some(3),
            fields: vec![("name".to_owned(), "Long-held".to_owned())],
            may_edit: true,
            ..RuleEditorData::default()
        };
        let not_found = |what: &str| {
            Err(ApiError::from(ConsoleError::NotFound {
                what: what.to_owned(),
            }))
        };
        let kept = unless_removed(not_found(NO_SUCH_RULE), Some(last.clone())).unwrap();
        assert!(kept.is_removed && kept.id.is_empty() && kept.version.is_none());
        assert_eq!(kept.fields, last.fields);
        // A page that opens, a version that is not stored, and a rule that is read again.
        assert!(unless_removed(not_found(NO_SUCH_RULE), None).is_err());
        assert!(unless_removed(not_found("this rule has no such version"), Some(last.clone())).is_err());
        assert_eq!(unless_removed(Ok(last.clone()), Some(kept)), Ok(last.clone()));
        // A reader has no input.
        let read = RuleEditorData {
            may_edit: false,
            ..last
        };
        assert!(unless_removed(not_found(NO_SUCH_RULE), Some(read)).is_err());
    }
}
