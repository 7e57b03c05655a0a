//! Asking another actor, with a limit and one typed error.

use std::time::Duration;

use ractor::rpc::CallResult;
use ractor::{ActorRef, Message, RpcReplyPort};

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The actor has ended, or dropped the question.
    #[error("the part of mcpx that was asked has ended")]
    Gone,
    /// It did not answer in time (`daemon.ask_timeout`).
    #[error("the part of mcpx that was asked did not answer within daemon.ask_timeout")]
    Late,
}

/// Asks `actor`; the only place where a call's outcome is taken apart.
pub async fn ask<M: Message, R: Send + 'static>(
    actor: &ActorRef<M>,
    limit: Duration,
    question: impl FnOnce(RpcReplyPort<R>) -> M,
) -> Result<R, AskError> {
    match actor.call(question, Some(limit)).await {
        Ok(CallResult::Success(answer)) => Ok(answer),
        Ok(CallResult::Timeout) => Err(AskError::Late),
        Ok(CallResult::SenderError) | Err(_) => Err(AskError::Gone),
    }
}
