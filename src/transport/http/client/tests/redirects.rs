//! Redirects, and where credentials go.

use super::*;

const JSON: &str = "200 OK\r\nContent-Type: application/json";

fn to(status: &str, location: &str) -> Vec<Do> {
    answer(&format!("{status}\r\nLocation: {location}"), "moved")
}

#[tokio::test]
async fn within_the_origin_the_whole_request_follows() {
    for status in ["307 T", "308 P", "301 M", "302 F"] {
        let mut server = server(vec![to(status, "/mcp/"), answer(JSON, "{}")]).await;
        assert_eq!(all(&server.client(), post()).await, ["frame {}", "whole"], "{status}");
        assert!(server.next().await.starts_with("POST /mcp "));
        let mut second = server.next().await;
        if second == "closed" {
            second = server.next().await;
        }
        assert!(second.starts_with("POST /mcp/ HTTP/1.1\r\n"), "{second}");
        assert!(second.contains("authorization: Bearer hush"), "{second}");
        assert!(second.ends_with("\r\n\r\n{\"id\":1}"), "{second}");
    }
}

#[tokio::test]
async fn a05_another_origin_gets_nothing() {
    let mut other = server(vec![answer(JSON, "{}")]).await;
    for status in ["307 T", "308 P", "301 M", "302 F"] {
        let server = server(vec![to(status, &other.url("/mcp"))]).await;
        let said = all(&server.client(), post()).await;
        assert!(said[0].starts_with("elsewhere "), "{said:?}");
        for origin in [server.address, other.address] {
            assert!(said[0].contains(&format!("http://{origin}")), "{said:?}");
        }
        assert!(said[0].ends_with(&format!("write url = \"{}\"", other.url("/mcp"))), "{said:?}");
    }
    assert!(other.seen.try_recv().is_err());
    // The same host by another name is another origin.
    let port = other.address.port();
    let server = server(vec![to("307 T", &format!("http://localhost:{port}/"))]).await;
    assert!(all(&server.client(), post()).await[0].starts_with("elsewhere "));
}

#[tokio::test]
async fn redirects_have_a_limit_and_need_an_address() {
    let rounds = (0..=LIMITS.redirects).map(|_| to("307 T", "/again")).collect();
    let said = all(&server(rounds).await.client(), post()).await;
    assert!(said[0].starts_with("elsewhere "), "{said:?}");
    assert!(said[0].ends_with("2 redirects are followed (setting upstream.redirects)"), "{said:?}");
    let said = all(&server(vec![to("307 T", "http://")]).await.client(), post()).await;
    assert!(said[0].ends_with("to what is no address"), "{said:?}");
    let said = all(&server(vec![answer("307 T", "")]).await.client(), post()).await;
    assert_eq!(said, ["refused 307 "]);
    let said = all(&server(vec![answer("303 S\r\nLocation: /x", "")]).await.client(), post()).await;
    assert_eq!(said, ["refused 303 "], "it would make a GET of it");
}
