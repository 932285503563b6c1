//! Markdown to HTML for pages of our own: headings get anchors, links among the documents lead to their pages, and nothing in
//! a document is taken for HTML.

use std::fmt::Write as _;

use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html as writer,
};

use super::guides;

/// The text below the first heading of a document in `folder`.
pub(super) fn html(text: &str, folder: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let events: Vec<Event<'_>> = Parser::new_ext(text, options).collect();
    let mut out = Vec::with_capacity(events.len());
    let mut at = 0;
    while let Some(event) = events.get(at) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                let title = heading(&events[at + 1..]);
                let id = anchor(&events[at + 1..], &title);
                out.push(Event::Html(format!("<{level} id=\"{id}\">").into()));
            }
            Event::End(TagEnd::Heading(level)) => out.push(closing(*level)),
            other => out.extend(rewritten(other, folder)),
        }
        at += 1;
    }
    let mut html = String::with_capacity(text.len() * 2);
    writer::push_html(&mut html, out.into_iter());
    html
}

fn closing(level: HeadingLevel) -> Event<'static> {
    Event::Html(format!("</{level}>\n").into())
}

fn rewritten<'a>(event: &Event<'a>, folder: &str) -> Vec<Event<'a>> {
    match event {
        Event::Start(Tag::Link { dest_url, .. }) => {
            vec![Event::InlineHtml(open_link(dest_url, folder).into())]
        }
        Event::End(TagEnd::Link) => vec![Event::InlineHtml("</a>".into())],
        Event::Start(Tag::Table(_)) => vec![
            Event::Html("<div class=\"scroll\"><table class=\"t st-table\">".into()),
            Event::Html("<thead>".into()),
        ],
        Event::Start(Tag::TableHead) => vec![Event::Html("<tr class=\"doc-heads\">".into())],
        Event::End(TagEnd::TableHead) => vec![Event::Html("</tr></thead><tbody>".into())],
        Event::Start(Tag::TableRow) => vec![Event::Html("<tr>".into())],
        Event::End(TagEnd::TableRow) => vec![Event::Html("</tr>".into())],
        Event::Start(Tag::TableCell) => vec![Event::Html("<td class=\"wrap\">".into())],
        Event::End(TagEnd::TableCell) => vec![Event::Html("</td>".into())],
        Event::End(TagEnd::Table) => vec![Event::Html("</tbody></table></div>\n".into())],
        Event::Start(Tag::CodeBlock(kind)) => vec![Event::Html(open_code(kind).into())],
        Event::End(TagEnd::CodeBlock) => vec![Event::Html("</pre>\n".into())],
        // Pictures are not part of the server.
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => Vec::new(),
        // Documents are text.
        Event::Html(text) | Event::InlineHtml(text) => vec![Event::Text(text.clone())],
        Event::Start(Tag::HtmlBlock) | Event::End(TagEnd::HtmlBlock) => Vec::new(),
        other => vec![other.clone()],
    }
}

fn open_code(kind: &CodeBlockKind<'_>) -> String {
    match kind {
        CodeBlockKind::Fenced(language) if !language.is_empty() => {
            format!(
                "<pre class=\"doc-pre\" tabindex=\"0\" data-language=\"{}\">",
                escaped(language)
            )
        }
        _ => "<pre class=\"doc-pre\" tabindex=\"0\">".to_owned(),
    }
}

fn open_link(target: &CowStr<'_>, folder: &str) -> String {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let anchor = if anchor.is_empty() {
        String::new()
    } else {
        format!("#{anchor}")
    };
    let is_elsewhere = target.contains("://") || target.starts_with('/');
    let path = match file {
        "" => anchor,
        _ if is_elsewhere => target.to_string(),
        file if file.ends_with(".md") => guides::path(&guides::name(&joined(folder, file))) + &anchor,
        // Only documents are served.
        _ => return "<a>".to_owned(),
    };
    format!("<a class=\"link\" href=\"{}\">", escaped(&path))
}

/// `../access.md` seen from `backends` is `access.md`.
fn joined(folder: &str, file: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in file.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The text of a heading; `events` are those after its start.
fn heading(events: &[Event<'_>]) -> String {
    let mut title = String::new();
    for event in events {
        match event {
            Event::End(TagEnd::Heading(_)) => break,
            Event::Text(text) | Event::Code(text) => title.push_str(text),
            _ => {}
        }
    }
    title
}

/// As in common Markdown viewers, except that the anchor of a heading which begins with a code span is that span alone.
fn anchor(events: &[Event<'_>], title: &str) -> String {
    if let Some(Event::Code(code)) = events.first()
        && code
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    {
        return code.to_string();
    }
    let mut id = String::new();
    for c in title.chars() {
        match c {
            ' ' => id.push('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => id.extend(c.to_lowercase()),
            _ => {}
        }
    }
    id
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' | '<' | '>' | '"' | '\'' => {
                // Writing to a text cannot fail.
                let _written = write!(out, "&#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_in_a_document_is_shown_as_text() {
        // Scripts in a block, inline, in a table and in a language name are all escaped.
        let page = html(
            "<script>alert(1)</script>\n\na <img src=x onerror=y> b\n\n| a |\n|---|\n| <b>x</b> |\n\n```\"><script>\nx\n```\n",
            "",
        );
        for hostile in ["<script", "<img", "<b>"] {
            assert!(!page.contains(hostile), "{page}");
        }
        assert!(page.contains("&lt;b&gt;x"), "{page}");
    }

    #[test]
    fn links_among_documents_lead_to_their_pages() {
        // From the folder itself, from one below, with an anchor; what is no document leads nowhere.
        let page = html(
            "[a](access.md#roles) [b](../unlock.md) [c](#here) [d](x.toml) [e](https://e.org)",
            "backends",
        );
        for link in [
            "href=\"/docs/backends-access#roles\"",
            "href=\"/docs/unlock\"",
            "href=\"#here\"",
            "<a>d</a>",
            "href=\"https://e.org\"",
        ] {
            assert!(page.contains(link), "{link}: {page}");
        }
    }

    #[test]
    fn headings_have_the_anchors_that_alerts_link_to() {
        // A condition by its word alone; everything else as usual.
        let page = html(
            "### `near_expiry` Near expiry\n\n## `[[backend]]` of kind `redis`\n",
            "",
        );
        assert!(page.contains("<h3 id=\"near_expiry\">"), "{page}");
        assert!(page.contains("<h2 id=\"backend-of-kind-redis\">"), "{page}");
    }
}
