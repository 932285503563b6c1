//! CPU time by process and thread, from `/proc`: of this process, which holds the server and the load, and of the processes
//! that it started. Threads that ended in between are not counted.

use std::collections::BTreeMap;
use std::fs;

use testkit::descendants;

/// `USER_HZ`, which is 100 on every Linux.
const TICK_US: f64 = 10_000.0;

/// CPU time of all threads of a name.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ThreadCpu {
    /// The thread's name in this process, the program's name for others.
    pub name: String,
    /// Microseconds.
    pub user_us: f64,
    pub system_us: f64,
}

/// User and system ticks by name.
pub(super) struct ThreadCpuSnapshot(BTreeMap<String, [u64; 2]>);

impl ThreadCpuSnapshot {
    pub(super) fn read() -> Self {
        let own_pid = std::process::id();
        let mut ticks = BTreeMap::<String, [u64; 2]>::new();
        for pid in std::iter::once(own_pid).chain(descendants(own_pid)) {
            let program = (pid != own_pid).then(|| stat(&format!("/proc/{pid}/stat")));
            let folder = format!("/proc/{pid}/task");
            for thread in threads_of(&folder) {
                let Some(stat) = stat(&format!("{folder}/{thread}/stat")) else {
                    continue;
                };
                let name = match &program {
                    Some(Some(program)) => program.name.clone(),
                    _ => stat.name,
                };
                let sum = ticks.entry(name).or_default();
                sum[0] += stat.user;
                sum[1] += stat.system;
            }
        }
        Self(ticks)
    }

    /// CPU time since it was read; names with the most first.
    pub(super) fn elapsed(&self) -> Vec<ThreadCpu> {
        let us = |ticks: u64| ticks as f64 * TICK_US;
        let mut all: Vec<ThreadCpu> = Self::read()
            .0
            .into_iter()
            .map(|(name, [user, system])| {
                let before = self.0.get(&name).copied().unwrap_or_default();
                ThreadCpu {
                    user_us: us(user.saturating_sub(before[0])),
                    system_us: us(system.saturating_sub(before[1])),
                    name,
                }
            })
            .filter(|cpu| cpu.user_us + cpu.system_us > 0.0)
            .collect();
        all.sort_by(|one, other| other.sum_us().total_cmp(&one.sum_us()));
        all
    }
}

impl ThreadCpu {
    pub(super) fn sum_us(&self) -> f64 {
        self.user_us + self.system_us
    }
}

struct Stat {
    name: String,
    user: u64,
    system: u64,
}

fn stat(path: &str) -> Option<Stat> {
    parse(&fs::read_to_string(path).ok()?)
}

/// The second field, the name in parentheses, may contain blanks; user and system time are fields 14 and 15.
fn parse(stat: &str) -> Option<Stat> {
    let (begin, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    Some(Stat {
        name: begin.split_once('(')?.1.to_owned(),
        user: fields.next()?.parse().ok()?,
        system: fields.next()?.parse().ok()?,
    })
}

fn threads_of(folder: &str) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_after_a_name_with_blanks() {
        let stat = parse("12 (a) b (c)) S 7 2 3 4 5 6 7 8 9 10 250 50 7 7").unwrap();
        assert_eq!(
            (stat.name.as_str(), stat.user, stat.system),
            ("a) b (c)", 250, 50)
        );
    }

    #[test]
    fn work_of_a_thread_is_found_under_its_name() {
        let before = ThreadCpuSnapshot::read();
        let busy = || {
            // Until the kernel has counted at least two ticks.
            let mut number = 1_u64;
            loop {
                (0..1_000_000).for_each(|_| number = std::hint::black_box(number.wrapping_mul(31)));
                let found = before.elapsed();
                let thread = found.into_iter().find(|cpu| cpu.name == "busy in a test");
                if let Some(thread) = thread.filter(|thread| thread.user_us >= 2.0 * TICK_US) {
                    return thread.sum_us();
                }
            }
        };
        let found = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("busy in a test".to_owned());
            thread.spawn_scoped(scope, busy).unwrap().join().unwrap()
        });
        assert!(found >= 2.0 * TICK_US);
    }
}
