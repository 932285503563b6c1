//! One connection, opened on demand and reopened after a failure. Every wait has a timeout.
//!
//! Not the crate's `ConnectionManager`: it reconnects in the background, retries for longer
//! than our timeout, and fails one request after each restart. Here an idle connection is
//! tested before use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::redis::aio::ConnectionLike;
use ::redis::{Cmd, Pipeline, RedisError, Value};
use tokio::sync::Mutex;

use super::connect::Connection;
use super::connection_config::Target;
use super::error;
use crate::BackendError;

pub(super) struct Link {
    target: Arc<Target>,
    current: Mutex<Option<RedisConnection>>,
    connects: AtomicU64,
}

/// A connection that has just answered. Its requests share one socket, with responses in
/// request order.
#[derive(Clone)]
pub(super) struct RedisConnection {
    connection: Connection,
    number: u64,
    target: Arc<Target>,
    /// Each command follows `ASKING`: the keys are in a slot that this node imports.
    is_asking: bool,
}

impl Link {
    pub(super) fn new(target: Arc<Target>) -> Self {
        Self {
            target,
            current: Mutex::new(None),
            connects: AtomicU64::new(0),
        }
    }

    /// A working connection: the old one if it still answers, otherwise a new one.
    pub(super) async fn connection(&self) -> Result<RedisConnection, BackendError> {
        let mut current = tokio::time::timeout(self.target.timeout, self.current.lock())
            .await
            .map_err(|_| error::no_answer(self.target.timeout))?;
        if let Some(connection) = current.as_ref() {
            match connection.raw(&::redis::cmd("PING")).await {
                Ok(_) => return Ok(connection.clone()),
                Err(error) if error::is_answer(&error) => return Ok(connection.clone()),
                Err(error) => {
                    *current = None;
                    // A server that hangs would hang again: one timeout per request is enough.
                    if error.is_timeout() {
                        return Err(error::no_answer(self.target.timeout));
                    }
                }
            }
        }
        let connection = self.connect().await?;
        *current = Some(connection.clone());
        Ok(connection)
    }

    async fn connect(&self) -> Result<RedisConnection, BackendError> {
        let socket = tokio::time::timeout(self.target.timeout, self.target.connect())
            .await
            .map_err(|_| error::no_answer(self.target.timeout))?
            .map_err(|error| error::connecting(&error, &self.target))?;
        let number = self.connects.fetch_add(1, Ordering::Relaxed);
        let connection = RedisConnection {
            connection: socket,
            number,
            target: Arc::clone(&self.target),
            is_asking: false,
        };
        // Without a login the server has sent nothing yet, and some refusals only arrive as a
        // response.
        match connection.raw(&::redis::cmd("PING")).await {
            Err(error) if !error::is_answer(&error) => Err(error::connecting(&error, &self.target)),
            Ok(_) | Err(_) => Ok(connection),
        }
    }

    /// Drops a failed connection unless it was replaced already.
    pub(super) async fn discard(&self, connection: &RedisConnection) {
        let mut current = self.current.lock().await;
        if current
            .as_ref()
            .is_some_and(|open| open.number == connection.number)
        {
            *current = None;
        }
    }
}

impl RedisConnection {
    pub(super) fn timeout(&self) -> std::time::Duration {
        self.target.timeout
    }

    /// For keys of a slot that this node of a cluster imports.
    pub(super) fn asking(&self) -> Self {
        Self {
            is_asking: true,
            ..self.clone()
        }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// One command; an error of the server is an `Err`.
    pub(super) async fn query(&self, command: &Cmd) -> Result<Value, BackendError> {
        self.raw(command)
            .await
            .map_err(|error| error::mapped(&error, self.target.timeout))
    }

    /// Several commands in one request; a server error is in its command's place.
    pub(super) async fn query_all(&self, commands: &Pipeline) -> Result<Vec<Value>, BackendError> {
        let count = commands.len();
        let answers = if self.is_asking {
            self.send_each(commands).await
        } else {
            let mut requests = self.connection.requests.clone();
            requests.req_packed_commands(commands, 0, count).await
        };
        let answers = answers.map_err(|error| error::mapped(&error, self.target.timeout))?;
        if answers.len() == count {
            Ok(answers)
        } else {
            Err(error::unexpected("a pipeline"))
        }
    }

    /// As [`Self::query`], with the driver's own error: a change needs to know whether there
    /// was a response.
    pub(super) async fn raw(&self, command: &Cmd) -> Result<Value, RedisError> {
        if !self.is_asking {
            return command.query_async(&mut self.connection.requests.clone()).await;
        }
        let mut commands = Pipeline::with_capacity(1);
        commands.add_command(command.clone());
        let answer = self.send_each(&commands).await?.into_iter().next();
        answer.unwrap_or(Value::Nil).extract_error()
    }

    async fn send_each(&self, commands: &Pipeline) -> Result<Vec<Value>, RedisError> {
        let mut asking = Pipeline::with_capacity(2 * commands.len());
        for command in commands.cmd_iter() {
            asking.cmd("ASKING");
            asking.add_command(command.clone());
        }
        let count = asking.len();
        let mut requests = self.connection.requests.clone();
        let answers = requests.req_packed_commands(&asking, 0, count).await?;
        Ok(answers.into_iter().skip(1).step_by(2).collect())
    }
}
