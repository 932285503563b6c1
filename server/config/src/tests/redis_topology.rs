//! Mistakes in the servers and accounts of a Redis backend: each with its key and its remedy.

use super::mistakes::{each_has_one_mistake, redis};

#[test]
fn keys_of_a_redis_backend_must_fit_its_mode() {
    // Numbers of nodes, repeated servers, accounts of the wrong kind, names that are missing.
    each_has_one_mistake(&[
        (
            redis("mode = \"sentinel\""),
            &["backend.cache.master_name: is missing", "mymaster"],
        ),
        (
            redis("mode = \"sentinel\"\nmaster_name = \"m\"").replace("redis://c", "redis://u:hunter2@c"),
            &["an address has a user or a password", "sentinel_user"],
        ),
        (
            redis("master_name = \"m\""),
            &["mode is \"standalone\"", "set mode = \"sentinel\""],
        ),
        (
            redis("mode = \"redlock\"").replace("[\"redis", "[\"redis://a\", \"redis"),
            &["has 2 nodes", "an odd number, at least 3"],
        ),
        (
            redis("mode = \"redlock\"").replace(
                "[\"redis",
                "[\"redis://a\", \"redis://b\", \"redis://d\", \"redis",
            ),
            &["has 4 nodes", "an odd number, at least 3"],
        ),
        (
            redis("mode = \"redlock\"").replace("[\"redis", "[\"redis://a\", \"redis://A:6379/2\", \"redis"),
            &["values 1 and 2 name the same server"],
        ),
        (
            redis("mode = \"cluster\"").replace("c:6379", "c:6379/3"),
            &["names a database", "database 0 only"],
        ),
        (
            redis("mode = \"cluster\"\nunlock_url = \"redis://u@c\""),
            &["names one server", "unlock_user"],
        ),
        (
            redis("unlock_user = \"u\"\nunlock_url = \"redis://u@c\""),
            &["unlock_url is given too"],
        ),
        (
            redis("mode = \"cluster\"\nwake = \"walrus\""),
            &["mode is \"cluster\"", "one server"],
        ),
        (
            redis("unlock_password = \"p\""),
            &["backend.cache.unlock_user: is missing"],
        ),
    ]);
}
