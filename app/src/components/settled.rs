//! A view without pending resources, which the server renders in one pass.
//!
//! On the server, a view inside a boundary is otherwise walked three times: to find its pending resources, to await them, and
//! to write the HTML. Each walk calls every reactive closure of the view, and the second creates a future for every node. For
//! a list of 1,000 rows this is most of the page's render time. The browser build does not need it.

use leptos::prelude::*;

/// **Invariant:** no resource is read inside.
#[cfg(not(feature = "ssr"))]
pub fn settled(view: impl IntoAny) -> AnyView {
    view.into_any()
}

/// **Invariant:** no resource is read inside.
#[cfg(feature = "ssr")]
pub fn settled(view: impl IntoAny) -> impl IntoView {
    server::Settled(view.into_any())
}

#[cfg(feature = "ssr")]
mod server {
    use leptos::attr::Attribute;
    use leptos::attr::any_attribute::AnyAttribute;
    use leptos::prelude::*;
    use leptos::tachys::hydration::Cursor;
    use leptos::tachys::view::{Position, PositionState};

    pub(super) struct Settled(pub(super) AnyView);

    impl Render for Settled {
        type State = <AnyView as Render>::State;

        fn build(self) -> Self::State {
            self.0.build()
        }

        fn rebuild(self, state: &mut Self::State) {
            self.0.rebuild(state);
        }
    }

    impl AddAnyAttr for Settled {
        type Output<NewAttr: Attribute> = <AnyView as AddAnyAttr>::Output<NewAttr>;

        fn add_any_attr<NewAttr: Attribute>(self, attr: NewAttr) -> Self::Output<NewAttr>
        where
            Self::Output<NewAttr>: RenderHtml,
        {
            self.0.add_any_attr(attr)
        }
    }

    impl RenderHtml for Settled {
        type AsyncOutput = Self;
        type Owned = Self;

        const MIN_LENGTH: usize = 0;

        fn dry_resolve(&mut self) {}

        async fn resolve(self) -> Self {
            self
        }

        fn html_len(&self) -> usize {
            self.0.html_len()
        }

        // The trait's own `to_html_async_with_buf` calls this.
        fn to_html_with_buf(
            self,
            buf: &mut String,
            position: &mut Position,
            escape: bool,
            mark_branches: bool,
            extra_attrs: Vec<AnyAttribute>,
        ) {
            self.0
                .to_html_with_buf(buf, position, escape, mark_branches, extra_attrs);
        }

        fn hydrate<const FROM_SERVER: bool>(self, cursor: &Cursor, position: &PositionState) -> Self::State {
            self.0.hydrate::<FROM_SERVER>(cursor, position)
        }

        fn into_owned(self) -> Self {
            self
        }
    }
}
