//! Links that set the time range of a page.

use domain::charts::range::{RangePreset, TimeRange};
use domain::charts::shown_range::ShownRange;
use leptos::prelude::*;

use crate::components::reactive::changing;
use crate::links::PageUrl;

/// The other parameters of the URL stay; a range among them is replaced.
#[component]
pub fn RangeLinks(
    #[prop(into)] range: Signal<ShownRange>,
    #[prop(into)] url: Signal<PageUrl>,
) -> impl IntoView {
    let entries = move || {
        let (range, url) = (range.get(), url.get().without(&TimeRange::FIELDS));
        entries(&range, &url)
    };
    view! { <nav class="ranges" aria-label="time range">{changing(entries)}</nav> }.into_any()
}

fn entries(range: &ShownRange, url: &PageUrl) -> Vec<AnyView> {
    let fitted = match (range.picked, range.begins_with_data) {
        (None, true) => Some(current(range.length())),
        (None, false) => None,
        (Some(_), _) => Some(view! { <a class="link" href=url.href() data-noscroll="">"Fit"</a> }.into_any()),
    };
    let shown = match (range.picked, range.begins_with_data) {
        (None, true) => None,
        _ => Some(range.as_picked()),
    };
    let presets = RangePreset::ALL.map(|preset| {
        if shown == Some(TimeRange::Last(preset)) {
            return current(preset.label().to_owned());
        }
        let href = url.with(&[("range", preset.as_str())]).href();
        view! { <a class="link" href=href data-noscroll="">{preset.label()}</a> }.into_any()
    });
    let between = matches!(range.picked, Some(TimeRange::Between { .. })).then(|| current(range.label()));
    fitted.into_iter().chain(presets).chain(between).collect()
}

fn current(text: String) -> AnyView {
    view! { <b aria-current="true">{text}</b> }.into_any()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    const NOW: i64 = 1_772_334_761_000;

    fn html(query: &str, since: Option<i64>) -> String {
        let pairs = crate::links::pairs(query);
        let range = ShownRange::from_pairs(&pairs, RangePreset::SixHours, since, NOW);
        let url = PageUrl::new("/fencing", query);
        Owner::new_root(None).with(|| {
            let view = view! { <RangeLinks range=Signal::stored(range) url=Signal::stored(url)/> };
            view.into_any().to_html().replace("<!>", "")
        })
    }

    #[test]
    fn links_keep_the_filters_and_replace_the_range() {
        let html = html("?prefix=a%26b&range=6h", None);
        assert!(
            html.contains(r#"href="/fencing?prefix=a%26b&amp;range=1h""#),
            "{html}"
        );
        assert!(
            html.contains(r#"<b aria-current="true">6 h</b>"#) && !html.contains("range=6h"),
            "{html}"
        );
        assert!(
            html.contains(r#"href="/fencing?prefix=a%26b""#) && html.contains(">Fit</a>"),
            "{html}"
        );
    }

    #[test]
    fn a_fitted_range_is_the_current_one() {
        let html = html("", Some(NOW - 600_000));
        assert!(html.contains(r#"<b aria-current="true">10 m</b>"#), "{html}");
        assert!(html.contains(">6 h</a>") && !html.contains(">Fit</a>"), "{html}");
    }
}
