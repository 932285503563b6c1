//! HTML that is escaped by construction: tags and attribute names are static, texts and values
//! are untrusted.

use domain::escape::visible;
use domain::format;
use leptos::prelude::*;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Markup(String);

pub type Attributes<'a> = &'a [(&'static str, &'a str)];

impl Markup {
    pub fn new() -> Self {
        Self::default()
    }

    /// Untrusted text, escaped.
    pub fn text(&mut self, text: &str) -> &mut Self {
        escape(&mut self.0, text);
        self
    }

    /// Name of a lock or an owner: hidden characters are shown, and its text direction is
    /// isolated.
    pub fn name(&mut self, name: &str) -> &mut Self {
        self.wrap("bdi", &[], |it| {
            it.text(&visible(name));
        })
    }

    pub fn wrap(
        &mut self,
        tag: &'static str,
        attributes: Attributes<'_>,
        inside: impl FnOnce(&mut Self),
    ) -> &mut Self {
        self.open(tag, attributes);
        self.0.push('>');
        inside(self);
        self.0.push_str("</");
        self.0.push_str(tag);
        self.0.push('>');
        self
    }

    /// An element with a text.
    pub fn text_element(&mut self, tag: &'static str, attributes: Attributes<'_>, text: &str) -> &mut Self {
        self.wrap(tag, attributes, |it| {
            it.text(text);
        })
    }

    /// An empty SVG element. Only within an `svg`, where self-closing tags are valid.
    pub fn mark(&mut self, tag: &'static str, attributes: Attributes<'_>) -> &mut Self {
        self.open(tag, attributes);
        self.0.push_str("/>");
        self
    }

    /// An SVG element with a tooltip.
    pub fn titled_element(
        &mut self,
        tag: &'static str,
        attributes: Attributes<'_>,
        title: &str,
    ) -> &mut Self {
        self.wrap(tag, attributes, |it| {
            it.text_element("title", &[], title);
        })
    }

    /// Wraps the content in a link if there is a URL.
    pub fn linked(&mut self, href: Option<&str>, label: &str, inside: impl FnOnce(&mut Self)) -> &mut Self {
        match href {
            Some(href) => self.wrap("a", &[("href", href), ("aria-label", label)], inside),
            None => {
                inside(self);
                self
            }
        }
    }

    pub fn push(&mut self, other: &Self) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }

    /// As a Leptos view.
    pub fn view(self) -> AnyView {
        view! { <div class="made" inner_html=self.0></div> }.into_any()
    }

    fn open(&mut self, tag: &'static str, attributes: Attributes<'_>) {
        self.0.push('<');
        self.0.push_str(tag);
        for (name, value) in attributes {
            self.0.push(' ');
            self.0.push_str(name);
            self.0.push_str("=\"");
            escape(&mut self.0, value);
            self.0.push('"');
        }
    }
}

/// A position in per cent.
pub fn percent(at: f64) -> String {
    let mut out = format::measure(at);
    out.push('%');
    out
}

fn escape(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
        out.push_str(&rest[..at]);
        out.push_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            _ => "&#39;",
        });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_cannot_end_a_tag() {
        // A hostile name as a text, as an attribute value and as a name.
        let bad = "\"><script>alert('1')</script>&\u{202e}";
        let mut it = Markup::new();
        it.text_element("p", &[("title", bad)], bad).name(bad);
        let html = it.into_string();
        assert_eq!(html.matches('<').count(), 4, "{html}");
        assert!(html.contains("&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)") && html.ends_with("</bdi>"));
        assert_eq!(html.matches('\u{202e}').count(), 2, "names show what is hidden");
    }
}
