//! Additions of the console of `leasehold demo`: a tour, and a command line for another sign-in link.

use std::collections::BTreeSet;

use app::session::TourLinks;
use parking_lot::Mutex;

/// Set by `leasehold demo` only. Lives as long as the demo, as its store does.
#[derive(Debug)]
pub struct DemoConsole {
    /// Prints another sign-in link for the visitor, in any terminal of the machine.
    pub link_command: String,
    tour: TourLinks,
    /// Ids of the users who closed the tour.
    dismissed_by: Mutex<BTreeSet<String>>,
}

impl DemoConsole {
    pub const fn new(link_command: String, tour: TourLinks) -> Self {
        Self {
            link_command,
            tour,
            dismissed_by: Mutex::new(BTreeSet::new()),
        }
    }

    /// The tour, until this user closes it.
    pub(super) fn tour_for(&self, user: &str) -> Option<TourLinks> {
        let is_dismissed = self.dismissed_by.lock().contains(user);
        (!is_dismissed).then(|| self.tour.clone())
    }

    pub(super) fn dismiss_tour(&self, user: &str) {
        self.dismissed_by.lock().insert(user.to_owned());
    }
}
