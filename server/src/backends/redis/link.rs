//! One connection that is made when it is needed and made again when it broke. Every wait is bounded.
//!
//! Not the crate's `ConnectionManager`: that reconnects behind our back, retries for longer than our timeout, and
//! fails one request after each restart. Here a connection that sat idle is tried before it is trusted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::redis::aio::ConnectionLike;
use ::redis::{Cmd, Pipeline, RedisError, Value};
use tokio::sync::Mutex;

use super::dial::Connection;
use super::fault;
use super::target::Target;
use crate::backends::BackendError;

pub(super) struct Link {
    target: Arc<Target>,
    current: Mutex<Option<Line>>,
    made: AtomicU64,
}

/// A connection that answered just now. Its requests share one socket; answers come in the order of requests.
#[derive(Clone)]
pub(super) struct Line {
    connection: Connection,
    number: u64,
    target: Arc<Target>,
}

impl Link {
    pub(super) fn new(target: Arc<Target>) -> Self {
        Self {
            target,
            current: Mutex::new(None),
            made: AtomicU64::new(0),
        }
    }

    /// A connection that answers: the old one if it still does, else a new one.
    pub(super) async fn line(&self) -> Result<Line, BackendError> {
        let mut current = tokio::time::timeout(self.target.timeout, self.current.lock())
            .await
            .map_err(|_| fault::no_answer(self.target.timeout))?;
        if let Some(line) = current.as_ref() {
            match line.raw(&::redis::cmd("PING")).await {
                Ok(_) => return Ok(line.clone()),
                Err(error) if fault::is_answer(&error) => return Ok(line.clone()),
                Err(error) => {
                    *current = None;
                    // Who hangs would hang again: one wait is enough for one question.
                    if error.is_timeout() {
                        return Err(fault::no_answer(self.target.timeout));
                    }
                }
            }
        }
        let line = self.connect().await?;
        *current = Some(line.clone());
        Ok(line)
    }

    async fn connect(&self) -> Result<Line, BackendError> {
        let connection = tokio::time::timeout(self.target.timeout, self.target.connect())
            .await
            .map_err(|_| fault::no_answer(self.target.timeout))?
            .map_err(|error| fault::connecting(&error, &self.target))?;
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let line = Line {
            connection,
            number,
            target: Arc::clone(&self.target),
        };
        // Without a login nothing was said yet, and some refusals are only heard in answer to something.
        match line.raw(&::redis::cmd("PING")).await {
            Err(error) if !fault::is_answer(&error) => Err(fault::connecting(&error, &self.target)),
            Ok(_) | Err(_) => Ok(line),
        }
    }

    /// Forgets a connection that failed, unless it was replaced already.
    pub(super) async fn discard(&self, line: &Line) {
        let mut current = self.current.lock().await;
        if current.as_ref().is_some_and(|kept| kept.number == line.number) {
            *current = None;
        }
    }
}

impl Line {
    pub(super) fn timeout(&self) -> std::time::Duration {
        self.target.timeout
    }

    /// One command; an error of the server is an `Err`.
    pub(super) async fn ask(&self, command: &Cmd) -> Result<Value, BackendError> {
        self.raw(command)
            .await
            .map_err(|error| fault::mapped(&error, self.target.timeout))
    }

    /// Many commands in one go; an error of the server stands in its command's place.
    pub(super) async fn ask_all(&self, commands: &Pipeline) -> Result<Vec<Value>, BackendError> {
        let count = commands.len();
        let mut connection = self.connection.requests.clone();
        let answers = connection.req_packed_commands(commands, 0, count).await;
        let answers = answers.map_err(|error| fault::mapped(&error, self.target.timeout))?;
        if answers.len() == count {
            Ok(answers)
        } else {
            Err(fault::unexpected("a pipeline"))
        }
    }

    /// As [`Self::ask`], with the driver's own error: whoever changes something must know whether there was an answer.
    pub(super) async fn raw(&self, command: &Cmd) -> Result<Value, RedisError> {
        command.query_async(&mut self.connection.requests.clone()).await
    }
}
