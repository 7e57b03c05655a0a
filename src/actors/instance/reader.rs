//! The reading task of a link: answers go straight to their callers.

use std::sync::Arc;

use ractor::ActorRef;
use tokio::sync::Semaphore;

use super::noise::NoiseGate;
use super::{InstanceMsg, Sink};
use crate::actors::inside::trace::{Tap, Way};
use crate::protocol::session::pending::{Pending, Resolved};
use crate::transport::clock;
use crate::transport::link::{LinkEvent, LinkReader};

/// Reads until the end: answers go straight to their callers, the rest to the instance, which gives a
/// credit back for each frame handled.
pub(super) async fn read(
    tap: Tap,
    mut reader: LinkReader,
    pending: Arc<Pending<Sink>>,
    me: ActorRef<InstanceMsg>,
    credits: usize,
    mut gate: NoiseGate,
) {
    let credits = Arc::new(Semaphore::new(credits.max(1)));
    loop {
        let event = tokio::select! {
            biased;
            event = reader.next() => event,
            () = gate.due() => {
                gate.tell();
                continue;
            }
        };
        if let LinkEvent::Frame(frame) = &event
            && gate.drops(frame)
        {
            gate.pause().await;
            continue;
        }
        if let LinkEvent::Frame(frame) = &event {
            tap.pass(Way::From, || frame.clone());
        }
        let other = match event {
            LinkEvent::Frame(frame) => match pending.resolve(clock::now(), frame) {
                Resolved::Taken => continue,
                Resolved::Other(frame) => {
                    gate.passes(&frame);
                    LinkEvent::Frame(frame)
                }
            },
            other => other,
        };
        // Never closed.
        let Ok(credit) = Arc::clone(&credits).acquire_owned().await else { return };
        let told = match other {
            LinkEvent::Frame(frame) => me.cast(InstanceMsg::FrameRead { frame, credit }),
            LinkEvent::TooLarge { head, bytes } => {
                me.cast(InstanceMsg::FrameTooLarge { head, bytes, credit })
            }
            LinkEvent::Closed { why } => {
                gate.tell();
                let _ = me.cast(InstanceMsg::LinkClosed { why });
                return;
            }
        };
        if told.is_err() {
            return;
        }
    }
}
