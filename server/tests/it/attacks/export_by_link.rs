//! The export of the audit log: another site leads an auditor's browser to it, or a query tries to name its file.

use crate::support::{TestServer, on};
use domain::access::Role;
use reqwest::Method;

#[tokio::test]
async fn a_link_of_another_site_exports_nothing() {
    // The same browser from another site, from our own page, and from the address bar; and pages stay reachable by links.
    let server = TestServer::builder().redis().start().await;
    server.add_user("ida", on(Role::Auditor, None, None)).await;
    let browser = server.signed_in("ida").await;
    let export = "/v1/audit/export?format=csv";
    let exports = async || {
        let rows = server.audit_entries().await;
        rows.iter().filter(|row| row.action == "AUDIT_EXPORT").count()
    };
    for site in ["cross-site", "same-site"] {
        let answer = browser
            .send(Method::GET, export, &[("sec-fetch-site", site)])
            .await;
        assert_eq!(answer.status(), 403, "{site}");
        assert_eq!(exports().await, 0, "{site}");
        let page = browser
            .send(Method::GET, "/audit", &[("sec-fetch-site", site)])
            .await;
        assert_eq!(page.status(), 200, "{site}");
    }
    for (count, site) in ["same-origin", "none"].into_iter().enumerate() {
        let answer = browser
            .send(Method::GET, export, &[("sec-fetch-site", site)])
            .await;
        assert_eq!(answer.status(), 200, "{site}");
        assert_eq!(exports().await, count + 1, "{site}");
    }
}

#[tokio::test]
async fn file_name_of_an_export_is_not_taken_from_the_query() {
    let server = TestServer::builder().redis().start().await;
    server.add_user("ida", on(Role::Auditor, None, None)).await;
    let browser = server.signed_in("ida").await;
    for (format, file) in [("csv", "leasehold-audit.csv"), ("json", "leasehold-audit.jsonl")] {
        let hostile = "x%22%3B%20filename%3Devil.exe%0D%0AX-Added%3A%201";
        let path = format!("/v1/audit/export?format={format}&actor={hostile}&prefix={hostile}");
        let answer = browser.send(Method::GET, &path, &[]).await;
        assert_eq!(answer.status(), 200);
        let name = answer.headers()["content-disposition"].to_str().unwrap();
        assert_eq!(name, format!("attachment; filename=\"{file}\""));
        assert!(!answer.headers().contains_key("x-added"));
    }
}
