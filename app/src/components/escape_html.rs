//! Escapes text where the framework does not: the document title, and the children of
//! `<textarea>`, which tachys writes unescaped.

use std::borrow::Cow;

pub(crate) fn escape_html(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_and_other_text_stays() {
        assert_eq!(escape_html("lock:a, cache · é"), "lock:a, cache · é");
        let hostile = r#"</title><meta a="b" c='d'>&lt;"#;
        let escaped = "&lt;/title&gt;&lt;meta a=&quot;b&quot; c=&#39;d&#39;&gt;&amp;lt;";
        assert_eq!(escape_html(hostile), escaped);
    }
}
