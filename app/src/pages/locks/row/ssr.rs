//! A row as server-rendered text: byte for byte what the components render, without creating
//! them.
//!
//! A row has some sixty nodes with closures, signals and futures that only the browser needs:
//! for a thousand rows they took most of the page's time. Changes must be made in both; a test
//! compares them.

use domain::escape::visible;
use domain::expiry_bar::{self, ExpiryBar, Form};
use domain::format;
use domain::lock::Lock;
use domain::reported::Reported;
use domain::state::LockState;

use super::{Placed, row_class, source_of};
use crate::components::elapsed::{WHEN_LAST_SEEN, at_least_word};
use crate::components::expiry_bar::{classes, percent};
use crate::components::resource_name::NameParts;
use crate::components::state_badge::badge_class;
use crate::links;

/// Bytes of a typical row.
const ROW_BYTES: usize = 1_600;

pub(super) fn row(placed: &Placed, index: usize, place: u64) -> String {
    let mut out = Html(String::with_capacity(ROW_BYTES));
    let lock = &*placed.row.lock;
    let class = row_class(&placed.row);
    out.raw("<tr aria-rowindex=\"").raw(&place.to_string());
    out.raw("\" data-row=\"").raw(&index.to_string());
    out.raw("\" class=\"").raw(class).raw("\">");
    name(&mut out, lock, placed.shared);
    out.raw("<td")
        .attribute("title", &source_of(lock))
        .raw(" class=\"c-b ink2\">");
    out.text(lock.id.backend.as_str())
        .raw("<!></td><td class=\"c-o\">");
    owner(&mut out, lock);
    out.raw("<!></td><td class=\"c-h num\">");
    write_held(&mut out, lock);
    out.raw("<!></td><td class=\"c-rw\">");
    bar(&mut out, lock);
    out.raw("<!></td><td class=\"c-w num\">");
    waiters(&mut out, &lock.waiter_count);
    out.raw("<!></td><td class=\"c-t num\">");
    known(
        &mut out,
        &lock.fencing_token.clone().map(|token| token.to_string()),
    );
    out.raw("<!></td><td class=\"c-st\">");
    badge(&mut out, lock);
    out.raw("<!></td><!><!></tr>");
    out.0
}

fn name(out: &mut Html, lock: &Lock, shared: usize) {
    let name = lock.id.resource.text();
    out.raw("<td class=\"c-res\"><a")
        .attribute("href", &links::lock(lock));
    if links::needs_browser(&name) {
        out.attribute("rel", "external");
    }
    let NameParts { title, dim, differs } = NameParts::split(&name, shared, true);
    out.raw("><span");
    if let Some(title) = title {
        out.attribute("title", &title);
    }
    out.raw(" class=\"res cut\"><bdi dir=\"ltr\">");
    if dim.is_empty() {
        out.raw("<!>");
    } else {
        out.raw("<i>").text(&dim).raw("<!></i>");
    }
    out.text(&differs).raw("<!><!></bdi><!></span><!></a><!></td>");
}

fn owner(out: &mut Html, lock: &Lock) {
    let owner = lock
        .owner_id
        .clone()
        .map(|owner| visible(owner.as_str()).into_owned());
    out.raw("<span");
    if let Some(owner) = owner.known().filter(|owner| owner.len() > 14) {
        out.attribute("title", owner);
    }
    out.raw(" class=\"cut\"><bdi dir=\"ltr\">");
    known(out, &owner);
    if lock.owner_count > 1 && lock.owner_id.is_known() {
        let others = format!(" +{}", lock.owner_count - 1);
        out.raw("<small class=\"ink3\">").text(&others).raw("<!></small>");
    } else {
        out.raw("<!>");
    }
    out.raw("<!><!></bdi><!></span>");
}

fn write_held(out: &mut Html, lock: &Lock) {
    let (ms, why) = match &lock.held_ms {
        Reported::Value(ms) if !lock.is_stale() => {
            out.text(&format::duration(*ms));
            return;
        }
        Reported::Value(ms) => (*ms, WHEN_LAST_SEEN),
        Reported::Unknown(why) | Reported::NotApplicable(why) => (lock.held_at_least_ms, &**why),
    };
    out.raw("<span").attribute("title", why).raw(">");
    out.text(&at_least_word(ms)).raw("<!></span>");
}

fn bar(out: &mut Html, lock: &Lock) {
    let drawing = ExpiryBar::from_lock(lock, 0);
    out.raw("<span class=\"rw ")
        .raw(&classes(lock, &drawing))
        .raw("\"><svg role=\"img\"><title>");
    out.text(&expiry_bar::title(lock)).raw("<!></title>");
    shape(out, lock, &drawing);
    out.raw("<!><!></svg><b>")
        .text(&expiry_bar::label(lock, 0))
        .raw("<!></b><!><!></span>");
}

fn shape(out: &mut Html, lock: &Lock, drawing: &ExpiryBar) {
    let left = percent(drawing.left);
    match drawing.form {
        Form::Leased if lock.is_stale() => {
            out.raw("<rect y=\"4\" height=\"8\"")
                .attribute("width", &left)
                .raw(" class=\"left\"></rect>");
            out.raw("<rect x=\"0.5\" y=\"4.5\" width=\"99.5%\" height=\"7\" class=\"edge\"></rect><!>");
        }
        Form::Leased => {
            out.raw("<rect y=\"5\" width=\"100%\" height=\"6\" class=\"track\"></rect><rect y=\"5\"");
            out.attribute("width", &left)
                .raw(" height=\"6\" class=\"left\"></rect>");
            marks(out, drawing);
        }
        Form::Expired => {
            out.raw("<rect y=\"5\" width=\"100%\" height=\"6\" class=\"track\"></rect>");
            out.raw("<line x1=\"0\" x2=\"0\" y1=\"1\" y2=\"15\" class=\"end\"></line>");
            marks(out, drawing);
        }
        Form::NoTtl => {
            out.raw("<line x1=\"0\" x2=\"100%\" y1=\"8\" y2=\"8\" class=\"rail\"></line>");
            out.raw(
                "<svg x=\"100%\" class=\"tip\"><path class=\"head\" d=\"M-5 4 0 8l-5 4\"></path><!></svg><!>",
            );
        }
        Form::Session => {
            out.raw("<line x1=\"0\" x2=\"100%\" y1=\"8\" y2=\"8\" class=\"dots\"></line>");
        }
        Form::Unknown => {
            out.raw("<rect x=\"0.5\" y=\"4.5\" width=\"99%\" height=\"7\" class=\"void\"></rect>");
        }
    }
}

fn marks(out: &mut Html, drawing: &ExpiryBar) {
    for at in &drawing.low_marks {
        let at = percent(*at);
        out.raw("<line").attribute("x1", &at).attribute("x2", &at);
        out.raw(" y1=\"2\" y2=\"14\" class=\"low\"></line>");
    }
    out.raw("<!>");
    if let Some(at) = drawing.notch {
        out.raw("<svg").attribute("x", &percent(at));
        out.raw(" class=\"tip\"><path class=\"notch\" d=\"M-3.5 16h7L0 12z\"></path><!></svg>");
    } else {
        out.raw("<!>");
    }
    out.raw("<!><!>");
}

fn waiters(out: &mut Html, count: &Reported<u32>) {
    match count {
        Reported::Value(0) => {
            out.raw("<span class=\"ink3\">0<!></span>");
        }
        Reported::Value(count) => {
            out.raw("<span class=\"waiting wn\">");
            out.text(&format::count(u64::from(*count))).raw("<!></span>");
        }
        unknown => known(out, &unknown.clone().map(|count| count.to_string())),
    }
}

fn known(out: &mut Html, value: &Reported<String>) {
    let (word, why) = match value {
        Reported::Value(value) => {
            out.text(value);
            return;
        }
        Reported::Unknown(why) => ("unknown", why),
        Reported::NotApplicable(why) => ("none", why),
    };
    out.raw("<span")
        .attribute("title", why)
        .raw(" class=\"ink3\">")
        .raw(word)
        .raw("<!></span>");
}

fn badge(out: &mut Html, lock: &Lock) {
    let state = lock.state;
    out.raw("<span").attribute("title", &visible(lock.cause()));
    out.attribute("class", &badge_class(state, false))
        .raw("><svg viewBox=\"0 0 12 12\" aria-hidden=\"true\" class=\"sh\"><use");
    out.attribute("href", &format!("#s-{}", state.as_str()))
        .raw("></use><!></svg>");
    if state == LockState::Stale {
        out.text(&format!("{}, {}", state.word(), format::age(lock.age_ms)));
    } else {
        out.text(state.word());
    }
    out.raw("<!><!></span>");
}

/// Escapes as the framework does.
struct Html(String);

impl Html {
    fn raw(&mut self, html: &str) -> &mut Self {
        self.0.push_str(html);
        self
    }

    /// An empty text creates no node in the document: a space replaces it.
    fn text(&mut self, text: &str) -> &mut Self {
        if text.is_empty() {
            self.0.push(' ');
        }
        self.escaped(text, &['&', '<', '>'])
    }

    fn attribute(&mut self, name: &str, value: &str) -> &mut Self {
        self.raw(" ").raw(name).raw("=\"");
        self.escaped(value, &['&', '<', '>', '"']).raw("\"")
    }

    fn escaped(&mut self, text: &str, special: &[char]) -> &mut Self {
        let mut rest = text;
        while let Some(at) = rest.find(special) {
            let (before, from) = rest.split_at(at);
            self.raw(before).raw(match from.as_bytes()[0] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                _ => "&quot;",
            });
            rest = &from[1..];
        }
        self.raw(rest)
    }
}
