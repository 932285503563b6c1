//! A page as a browser parses it: its elements with the names of their attributes, its title, its comments.

use std::collections::BTreeSet;

use html5ever::tendril::TendrilSink as _;
use html5ever::{ParseOpts, parse_document};
use markup5ever_rcdom::{Handle, NodeData, RcDom};

#[derive(Debug, Default)]
pub(crate) struct Html {
    /// One line per element in document order: its depth, its tag, the names of its attributes.
    pub(crate) elements: Vec<String>,
    /// The same without those of drawings.
    pub(crate) outside_drawings: Vec<String>,
    /// Tags and names of attributes.
    pub(crate) names: BTreeSet<String>,
    /// Text of each `<title>` of the document, those of drawings apart.
    pub(crate) titles: Vec<String>,
    pub(crate) comments: Vec<String>,
    /// All text, scripts and style sheets included.
    pub(crate) text: String,
    pub(crate) attribute_values: Vec<(String, String)>,
    /// Names of the fields of forms that are posted; passwords apart.
    pub(crate) posted_fields: BTreeSet<String>,
}

/// What a node is in.
#[derive(Clone, Copy, Default)]
struct Place {
    is_drawing: bool,
    is_posted: bool,
}

impl Html {
    pub(crate) fn parse(page: &str) -> Self {
        let dom = parse_document(RcDom::default(), ParseOpts::default()).one(page);
        let mut html = Self::default();
        html.visit(&dom.document, 0, Place::default());
        html
    }

    pub(crate) fn title(&self) -> &str {
        assert_eq!(self.titles.len(), 1, "{:?}", self.titles);
        &self.titles[0]
    }

    fn visit(&mut self, node: &Handle, depth: usize, mut place: Place) {
        match &node.data {
            NodeData::Element { name, attrs, .. } => {
                let tag = name.local.to_string();
                place.is_drawing |= tag == "svg";
                let attrs = attrs.borrow();
                let attribute = |name: &str| {
                    let found = attrs.iter().find(|it| &*it.name.local == name);
                    found.map(|it| it.value.to_string())
                };
                place.is_posted |= tag == "form" && attribute("method").is_some_and(|it| it == "post");
                // A field outside of its form names it.
                let is_posted = place.is_posted || attribute("form").is_some();
                if is_posted && tag != "form" && attribute("type").is_none_or(|it| it != "password") {
                    self.posted_fields.extend(attribute("name"));
                }
                let mut line = format!("{depth} {tag}");
                for attribute in attrs.iter() {
                    let name = attribute.name.local.to_string();
                    line.push(' ');
                    line.push_str(&name);
                    self.attribute_values
                        .push((name.clone(), attribute.value.to_string()));
                    self.names.insert(name);
                }
                if tag == "title" && !place.is_drawing {
                    self.titles.push(text_below(node));
                }
                self.names.insert(tag);
                if !place.is_drawing {
                    self.outside_drawings.push(line.clone());
                }
                self.elements.push(line);
            }
            NodeData::Text { contents } => self.text.push_str(&contents.borrow()),
            NodeData::Comment { contents } => self.comments.push(contents.to_string()),
            NodeData::Document | NodeData::Doctype { .. } | NodeData::ProcessingInstruction { .. } => {}
        }
        for child in node.children.borrow().iter() {
            self.visit(child, depth + 1, place);
        }
    }
}

fn text_below(node: &Handle) -> String {
    let children = node.children.borrow();
    let texts = children.iter().map(|child| match &child.data {
        NodeData::Text { contents } => contents.borrow().to_string(),
        _ => text_below(child),
    });
    texts.collect()
}

#[test]
fn a_parsed_page_has_its_elements_titles_and_comments() {
    let page = "<!DOCTYPE html><title>a &lt;b&gt;</title><svg><title>c</title></svg><p class=x>d<!--e--></p>";
    let html = Html::parse(page);
    assert_eq!(html.title(), "a <b>");
    assert_eq!(html.comments, ["e"]);
    assert!(html.elements.contains(&"3 p class".to_owned()), "{html:?}");
    assert_eq!(html.outside_drawings.len() + 2, html.elements.len());
    assert!(html.names.contains("class") && html.text.contains("d"));
}
