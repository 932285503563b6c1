//! A view that the server makes once, when its data is there.
//!
//! Before a suspended view is rendered, the framework makes all of it and throws it away, to find out what else it waits
//! for. What stands in a boundary waits for nothing else, so asking for the data is enough.

use leptos::attr::Attribute;
use leptos::attr::any_attribute::AnyAttribute;
use leptos::prelude::*;
use leptos::tachys::hydration::Cursor;
use leptos::tachys::view::any_view::AnyViewState;
use leptos::tachys::view::{Position, PositionState};

pub struct Late {
    ask: Box<dyn Fn() + Send>,
    make: Box<dyn FnOnce() -> AnyView + Send>,
}

impl Late {
    /// `ask` reads what is waited for, `make` makes the view of it.
    pub fn new(ask: impl Fn() + Send + 'static, make: impl FnOnce() -> AnyView + Send + 'static) -> Self {
        Self {
            ask: Box::new(ask),
            make: Box::new(make),
        }
    }
}

impl Render for Late {
    type State = AnyViewState;

    fn build(self) -> AnyViewState {
        (self.make)().build()
    }

    fn rebuild(self, state: &mut AnyViewState) {
        (self.make)().rebuild(state);
    }
}

impl AddAnyAttr for Late {
    type Output<A: Attribute> = <AnyView as AddAnyAttr>::Output<A>;

    fn add_any_attr<A: Attribute>(self, attribute: A) -> Self::Output<A>
    where
        Self::Output<A>: RenderHtml,
    {
        (self.make)().add_any_attr(attribute)
    }
}

impl RenderHtml for Late {
    type AsyncOutput = AnyView;
    type Owned = Self;

    const MIN_LENGTH: usize = 0;

    fn dry_resolve(&mut self) {
        (self.ask)();
    }

    async fn resolve(self) -> AnyView {
        (self.make)().resolve().await
    }

    fn to_html_with_buf(
        self,
        buf: &mut String,
        position: &mut Position,
        escape: bool,
        mark_branches: bool,
        extra_attrs: Vec<AnyAttribute>,
    ) {
        (self.make)().to_html_with_buf(buf, position, escape, mark_branches, extra_attrs);
    }

    fn hydrate<const FROM_SERVER: bool>(self, cursor: &Cursor, position: &PositionState) -> AnyViewState {
        (self.make)().hydrate::<FROM_SERVER>(cursor, position)
    }

    fn into_owned(self) -> Self {
        self
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn finding_out_what_it_waits_for_makes_nothing() {
        // Asked twice, as the framework does, then rendered: made once, and rendered as what was made.
        let (asked, made) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let counts = || (asked.load(Ordering::Relaxed), made.load(Ordering::Relaxed));
        let (asking, making) = (asked.clone(), made.clone());
        let ask = move || {
            asking.fetch_add(1, Ordering::Relaxed);
        };
        let mut late = Late::new(ask, move || {
            making.fetch_add(1, Ordering::Relaxed);
            view! { <b>"made"</b> }.into_any()
        });
        late.dry_resolve();
        late.dry_resolve();
        assert_eq!(counts(), (2, 0));
        assert_eq!(late.to_html(), view! { <b>"made"</b> }.into_any().to_html());
        assert_eq!(counts(), (2, 1));
    }
}
