//! The edges of the pattern, the same for a pattern alone, on a bus and across a connection (T-19).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use nacp::bus::Pattern;
use nacp::{NApp, SubscribeError};

use crate::support::{Net, Outcome, target, within};

/// A line of T-19: its number, a pattern, and names with whether it matches them.
type Row = (u8, &'static str, &'static [(&'static str, bool)]);

const TABLE: [Row; 10] = [
    (
        1,
        "a:*:c",
        &[
            ("a:b:c", true),
            ("a::c", true),
            ("a:c", false),
            ("a:b:b:c", false),
            ("a:b:c:", false),
            (":a:b:c", false),
        ],
    ),
    (
        2,
        "*",
        &[("a", true), ("", true), ("a:b", false), (":", false)],
    ),
    (
        3,
        "*:*",
        &[
            (":", true),
            ("a:", true),
            (":b", true),
            ("a:b", true),
            ("a:b:c", false),
        ],
    ),
    (
        4,
        "a:*",
        &[("a", false), ("a:", true), ("a:b", true), ("ab:c", false)],
    ),
    (5, "", &[("", true), ("a", false)]),
    (6, "a:b*", &[("a:b*", true), ("a:bc", false)]),
    (6, "**", &[("a", false), ("**", true)]),
    (6, "a.c:*", &[("abc:x", false), ("a.c:x", true)]),
    (7, "a:*:c", &[("a:*:c", true)]),
    (7, "a:b:c", &[("a:*:c", false)]),
];

#[test]
fn a_pattern_matches_what_the_table_says() {
    for (line, pattern, names) in TABLE {
        let parsed = Pattern::parse(pattern).unwrap();
        for (name, matches) in names {
            assert_eq!(
                parsed.matches(name),
                *matches,
                "T-19, {line}: {pattern} {name}"
            );
        }
    }
}

#[tokio::test]
async fn a_listener_hears_what_the_table_says() -> Outcome {
    let node = NApp::builder("node").start().await?;
    for (line, pattern, names) in TABLE {
        let heard = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&heard);
        let listener = node.listen(pattern, move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
        })?;
        for (name, matches) in names {
            let before = heard.load(Ordering::SeqCst);
            node.emit(name, &())?;
            let hits = heard.load(Ordering::SeqCst) - before;
            assert_eq!(
                hits,
                usize::from(*matches),
                "T-19, {line}: {pattern} {name}"
            );
        }
        assert!(node.off(listener));
    }
    Ok(())
}

#[tokio::test]
async fn a_star_in_a_name_is_a_literal_segment() -> Outcome {
    // T-19, 7: three listeners at once.
    let node = NApp::builder("node").start().await?;
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    for pattern in ["a:*:c", "a:b:c", "*:*:*"] {
        let heard = Arc::clone(&heard);
        node.listen(pattern, move |_| heard.lock().unwrap().push(pattern))?;
    }
    node.emit("a:*:c", &())?;
    assert_eq!(*heard.lock().unwrap(), ["a:*:c", "*:*:*"]);
    Ok(())
}

over_both! {
    async fn a_subscription_hears_what_the_table_says(net: Net) -> Outcome {
        let server = net.server("server").start().await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        for (line, pattern, names) in TABLE {
            if pattern.is_empty() {
                // T-19, 5: there is no subscription to the empty name.
                let refused = client.subscribe("server", pattern).await.unwrap_err();
                let why = Some("bad-target-sub-name".into());
                assert_eq!(refused, SubscribeError::Rejected { why });
                continue;
            }
            let mut stream = client.subscribe("server", pattern).await?;
            let mut expected = Vec::new();
            for (name, matches) in names {
                assert_eq!(server.emit(name, &())?, usize::from(*matches), "T-19, {line}: {name}");
                expected.extend(matches.then_some(*name));
            }
            for name in expected {
                assert_eq!(within("an event", stream.next()).await.unwrap().name, name);
            }
            // Behind every event that the server has sent.
            client.heartbeat("server").await?;
            assert_eq!(stream.next().now_or_never(), None, "T-19, {line}: {pattern}");
            within("the answer", stream.unsubscribe()).await?;
        }
        Ok(())
    }

    async fn patterns_have_a_longest_length_and_any_number_of_segments(net: Net) -> Outcome {
        // T-19, 8.
        let server = net.server("server").start().await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        let colons = ":".repeat(512);
        let longest = "x".repeat(1024);
        for pattern in [&colons, &longest] {
            let mut stream = client.subscribe("server", pattern).await?;
            assert_eq!(server.emit(pattern, &1)?, 1);
            assert_eq!(within("an event", stream.next()).await.unwrap().name, pattern.as_str());
        }
        let refused = client.subscribe("server", &"x".repeat(1025)).await.unwrap_err();
        assert_eq!(refused, SubscribeError::Rejected { why: Some("limit-reached".into()) });
        Ok(())
    }

    async fn ten_thousand_patterns_with_stars_in_common_places_cost_what_they_match(net: Net) -> Outcome {
        // T-19, 8: twenty segments in common, half of them stars; were every star tried, 2^20 ways.
        let server = net.server("server").config(|config| config.max_subscriptions(5000)).start().await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        let shared = "a:*:".repeat(10);
        let starred = "a:".repeat(19);
        let mut streams = Vec::new();
        for n in 0..5000 {
            server.listen(&format!("{shared}{n}"), |_| {})?;
            server.listen(&format!("{starred}*:{n}"), |_| {})?;
            if n < 4 {
                streams.push(client.subscribe("server", &format!("{shared}{n}")).await?);
            }
        }
        let name = "a:".repeat(20);
        let emitted = tokio::task::spawn_blocking(move || {
            (0..5000).map(|n| server.emit(&format!("{name}{n}"), &n)).collect::<Result<Vec<_>, _>>()
        });
        let emitted = within("the emits", emitted).await??;
        for (n, hits) in emitted.into_iter().enumerate() {
            assert_eq!(hits, 2 + usize::from(n < 4), "{n}");
        }
        for (n, stream) in streams.iter_mut().enumerate() {
            assert_eq!(within("an event", stream.next()).await.unwrap().decode::<usize>()?, n);
        }
        Ok(())
    }
}
