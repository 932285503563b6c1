//! Another site leads an auditor's browser to the export of the audit log, which would be recorded in the auditor's name.

use domain::access::Role;
use reqwest::{Method, StatusCode};

use crate::people::stage::{Stage, on};

#[tokio::test]
async fn a_link_of_another_site_exports_nothing() {
    // The same browser from another site, from our own page, and from the address bar; and pages stay reachable by links.
    let stage = Stage::start().await;
    stage.person("ida", on(Role::Auditor, None, None)).await;
    let browser = stage.signed_in("ida").await;
    let export = "/v1/audit/export?format=csv";
    let exports = async || {
        let rows = stage.record().await;
        rows.iter().filter(|row| row.action == "AUDIT_EXPORT").count()
    };
    for site in ["cross-site", "same-site"] {
        let answer = browser
            .send(Method::GET, export, &[("sec-fetch-site", site)])
            .await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{site}");
        assert_eq!(exports().await, 0, "{site}");
        let page = browser
            .send(Method::GET, "/audit", &[("sec-fetch-site", site)])
            .await;
        assert_eq!(page.status(), StatusCode::OK, "{site}");
    }
    for (count, site) in ["same-origin", "none"].into_iter().enumerate() {
        let answer = browser
            .send(Method::GET, export, &[("sec-fetch-site", site)])
            .await;
        assert_eq!(answer.status(), StatusCode::OK, "{site}");
        assert_eq!(exports().await, count + 1, "{site}");
    }
}
