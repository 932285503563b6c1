//! `/fencing` as HTML.

use super::chart_pages::ChartPages;

#[tokio::test]
async fn without_reports_the_fencing_page_explains_reporting() {
    let pages = ChartPages::start().await;
    let (status, html) = pages.page("/fencing").await;
    assert_eq!(status, 200);
    for text in [
        "No rejections reported yet",
        "/v1/fencing/rejections",
        "/v1/fencing/check",
        "No fencing rejections",
    ] {
        assert!(html.contains(text), "{text}: {html}");
    }
}

#[tokio::test]
async fn refused_writes_are_counted_listed_and_filtered() {
    // Three writes on two locks by two sources; each filter alone, two ranges, and the chart with its table.
    let pages = ChartPages::start().await;
    for (resource, source) in [
        ("tenant_1:a", "ledger-db"),
        ("tenant_1:a", "ledger-db"),
        ("tenant_2:b", "stock-api"),
    ] {
        pages.refuse(resource, 7, source).await;
    }
    let rows = |html: &str| html.matches("class=\"f-n\"").count();
    let (_, html) = pages.page("/fencing").await;
    assert!(html.contains("3 writes rejected in the last 24\u{a0}h"), "{html}");
    assert_eq!(rows(&html), 3, "{html}");
    // The chart's one bar and the row of its table.
    assert!(
        html.contains(": 3 rejections</title>") && html.contains("<td>3</td>"),
        "{html}"
    );
    assert!(html.contains("/alerts/rules/new?condition=fencing_rejections"));
    for (query, count) in [
        ("prefix=tenant_1", 2),
        ("source=stock-api", 1),
        ("owner=nobody", 0),
        ("backend=elsewhere", 0),
        ("range=1h&prefix=tenant_2:b", 1),
        ("from=2026-05-01&to=2026-05-02", 0),
    ] {
        let (status, html) = pages.page(&format!("/fencing?{query}")).await;
        assert_eq!((status.as_u16(), rows(&html)), (200, count), "{query}: {html}");
    }
    let (status, html) = pages.page("/fencing?range=soon").await;
    assert!(status == 400 && html.contains("range must be one of"), "{html}");
    let (status, html) = pages.page("/fencing?before=x").await;
    assert!(status == 400 && html.contains("role=\"alert\""), "{html}");
}

#[tokio::test]
async fn a_tenant_viewer_sees_only_its_fencing_rejections() {
    // The other tenant's writes are neither listed nor counted nor named; a tenant without rejections gets the page without data.
    let pages = ChartPages::start().await;
    pages.refuse("tenant_1:a", 7, "ledger-db").await;
    pages.refuse("tenant_12:a", 7, "secret-source").await;
    let one = pages.viewer_of("tenant_1").await;
    let (_, html) = pages.page_as(&one, "/fencing").await;
    assert!(
        html.contains("1 write rejected") && html.contains("tenant_1:a"),
        "{html}"
    );
    assert!(
        !html.contains("tenant_12") && !html.contains("secret-source"),
        "{html}"
    );
    let none = pages.viewer_of("tenant_3").await;
    let (_, html) = pages.page_as(&none, "/fencing").await;
    assert!(html.contains("No rejections reported yet"), "{html}");
}

#[tokio::test]
async fn paging_of_rejections_neither_repeats_nor_omits() {
    // 120 writes: three pages by the link to older ones.
    let pages = ChartPages::start().await;
    for token in 1..=120 {
        pages.refuse(&format!("r:{token:03}"), token, "db").await;
    }
    let (mut path, mut seen) = ("/fencing".to_owned(), Vec::new());
    loop {
        let (_, html) = pages.page(&path).await;
        let list = html
            .split("id=\"rejections\"")
            .nth(1)
            .unwrap()
            .split("</table>")
            .next()
            .unwrap();
        seen.extend(
            list.split("/locks/builtin/")
                .skip(1)
                .map(|rest| rest.split('"').next().unwrap().to_owned()),
        );
        let Some(next) = html.split("rel=\"next\" href=\"").nth(1) else {
            break;
        };
        path = next.split(['"', '#']).next().unwrap().replace("&amp;", "&");
    }
    let wanted: Vec<String> = (1..=120).rev().map(|token| format!("r:{token:03}")).collect();
    assert_eq!(seen, wanted);
}

#[tokio::test]
async fn hostile_names_in_rejections_are_escaped() {
    let pages = ChartPages::start().await;
    let bad = "\"><script>alert(1)</script>\u{200b}x";
    pages.refuse(bad, 7, "<img src=x onerror=alert(1)>").await;
    let (_, html) = pages.page("/fencing?owner=%3Cscript%3E").await;
    assert!(
        !html.contains("<script>alert") && !html.contains("<img"),
        "{html}"
    );
    let (_, html) = pages.page("/fencing").await;
    assert!(
        !html.contains("<script>alert") && !html.contains("<img"),
        "{html}"
    );
    assert!(!html.contains('\u{200b}') && html.contains("\\u{200b}"), "{html}");
}

#[tokio::test]
async fn grants_of_a_history_that_cannot_be_read_are_unknown() {
    let pages = ChartPages::start().await;
    pages.break_history().await;
    let (status, html) = pages.page("/fencing").await;
    assert_eq!(status, 200);
    assert!(html.contains("Unknown: grants could not be read."), "{html}");
    assert!(!html.contains("No grants with a token"), "{html}");
}
