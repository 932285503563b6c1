use super::super::limits::{BUCKETS_MAX, LINK_RATE, NAME_RATE, PROVIDER_RATE, SOURCE_RATE};
use super::*;

fn source(number: u32) -> ClientNetwork {
    std::net::IpAddr::from(number.to_be_bytes()).into()
}

/// A failing attempt; returns the wait if it is refused.
fn fail(throttle: &SignInThrottle, keys: &[Key], now: Tick) -> Option<Duration> {
    match throttle.try_reserve(keys, now) {
        Ok(()) => {
            drop(Reservation {
                throttle,
                keys: keys.to_vec(),
            });
            None
        }
        Err(full) => Some(full.wait),
    }
}

#[test]
fn a_thousand_guesses_take_hours_and_lock_no_user_out() {
    // One source guesses at the maximum rate; the owner signs in from elsewhere; later the source may try again.
    let throttle = SignInThrottle::default();
    let mut now = Tick(0);
    let (attacker, _) = throttle.keys(source(1), "ada");
    let (owner, _) = throttle.keys(source(2), "ada");
    for _ in 0..1_000 {
        while let Some(wait) = fail(&throttle, &attacker, now) {
            now = Tick(now.0 + i64::try_from(wait.as_millis()).unwrap());
        }
    }
    assert!(now.0 > 16 * 3_600 * 1_000, "{} ms", now.0);
    assert_eq!(fail(&throttle, &owner, now), None);
    assert!(fail(&throttle, &attacker, now).unwrap() <= SOURCE_RATE.every);
    assert_eq!(fail(&throttle, &attacker, Tick(now.0 + 60_000)), None);
}

#[test]
fn a_source_has_one_bucket_for_all_names() {
    // 10,000 names from one source: only the burst is evaluated.
    let throttle = SignInThrottle::default();
    let evaluated = (0..10_000)
        .filter(|number| {
            let (keys, _) = throttle.keys(source(1), &format!("name-{number}"));
            fail(&throttle, &keys, Tick(0)).is_none()
        })
        .count();
    assert_eq!(evaluated, SOURCE_RATE.burst as usize);
}

#[test]
fn the_sources_of_an_ipv6_site_share_a_bucket() {
    // A thousand networks of one /48, each with names of its own: the site uses up its rate, and neither another site nor
    // an IPv4 source waits. The same for links and for the provider.
    let throttle = SignInThrottle::default();
    let network = |site: u16, network: u16| {
        let address = std::net::Ipv6Addr::new(0x2001, 0xdb8, site, network, 0, 0, 0, 1);
        ClientNetwork::from(std::net::IpAddr::from(address))
    };
    let evaluated = (0..1_000)
        .filter(|number| {
            let (keys, _) = throttle.keys(network(1, *number), &format!("name-{number}"));
            fail(&throttle, &keys, Tick(0)).is_none()
        })
        .count();
    assert_eq!(evaluated, SOURCE_RATE.of_site().burst as usize);
    for other in [network(2, 1), source(1)] {
        let (keys, _) = throttle.keys(other, "ada");
        assert_eq!(fail(&throttle, &keys, Tick(0)), None);
    }
    for (attempts, rate) in [(Attempts::Links, LINK_RATE), (Attempts::Provider, PROVIDER_RATE)] {
        let counted = (0..1_000)
            .map(|number| Key::of_source(network(1, number), attempts))
            .filter(|keys| throttle.count(keys.clone(), Tick(0)).is_ok())
            .count();
        assert_eq!(counted, rate.of_site().burst as usize);
    }
}

#[test]
fn a_name_has_one_bucket_for_all_sources() {
    // One source per attempt, as in a botnet. A known pair does not wait.
    let throttle = SignInThrottle::default();
    throttle.remember(source(0), "ada");
    let evaluated = (1..1_000)
        .filter(|number| {
            let (keys, _) = throttle.keys(source(*number), "ada");
            fail(&throttle, &keys, Tick(0)).is_none()
        })
        .count();
    assert_eq!(evaluated, NAME_RATE.burst as usize);
    let (keys, is_known) = throttle.keys(source(0), "ada");
    assert!(is_known);
    assert_eq!(fail(&throttle, &keys, Tick(0)), None);
}

#[test]
fn a_full_table_drops_its_oldest_and_still_counts() {
    // A hundred sources more than fit; then guesses from one of them.
    let throttle = SignInThrottle::default();
    for number in 0..u32::try_from(BUCKETS_MAX).unwrap() + 100 {
        let _counted = throttle.count(Key::of_source(source(number), Attempts::Links), Tick(0));
    }
    assert_eq!(throttle.lock().buckets.len(), BUCKETS_MAX);
    let (keys, _) = throttle.keys(source(1), "ada");
    let evaluated = (0..30)
        .filter(|_| fail(&throttle, &keys, Tick(0)).is_none())
        .count();
    assert_eq!(evaluated, SOURCE_RATE.burst as usize);
    assert_eq!(throttle.lock().buckets.len(), BUCKETS_MAX);
}

#[test]
fn known_sources_are_bounded() {
    // One more than fits: the first is dropped.
    let throttle = SignInThrottle::default();
    for number in 0..=u32::try_from(KNOWN_PAIRS_MAX).unwrap() {
        throttle.remember(source(number), "ada");
    }
    assert_eq!(throttle.lock().known.set.len(), KNOWN_PAIRS_MAX);
    assert!(!throttle.keys(source(0), "ada").1);
    assert!(throttle.keys(source(1), "ada").1);
}

#[tokio::test]
async fn right_passwords_at_the_same_time_do_not_block_each_other() {
    // Eight from one source: five are evaluated, three wait until those have succeeded.
    let (throttle, clock) = (SignInThrottle::default(), Clock::start());
    let (keys, _) = throttle.keys(source(1), "ada");
    let attempts = (0..8).map(|_| async {
        let reservation = throttle.reserve(keys.clone(), &clock).await.unwrap();
        tokio::task::yield_now().await;
        reservation.refund();
    });
    futures::future::join_all(attempts).await;
    assert_eq!(fail(&throttle, &keys, clock.tick()), None);
}
