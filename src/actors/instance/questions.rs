//! What an upstream asks that belongs to no call: it goes to the broker, and nobody else hears of it.
//! But for roots, which servers ask for before anything is called, and which bother nobody: the one
//! host that the instance serves says them (E-12).

use std::time::Instant;

use super::state::InstanceState;
use super::{InstanceArgs, InstanceMsg, Said};
use crate::actors::broker::Held;
use crate::actors::events::Event;
use crate::actors::host::line::line_of;
use crate::actors::support::task;
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::model::questions::{Kind, Question, Reply, unanswered, with_elicitation};

impl InstanceState {
    /// What is declared at a handshake (U-36): elicitation, because the broker stands behind every
    /// host, and what all hosts that are there and may come to share the instance can be asked.
    pub(super) fn declared(&self) -> RawJson {
        let InstanceArgs { def, key, shop, .. } = &self.args;
        let by_hosts = shop.subs.declared(def, &key.scope);
        with_elicitation(Some(&by_hosts.write()))
    }

    /// A question that belongs to no call.
    pub(super) fn asked(&mut self, number: u64, question: Question) {
        let InstanceArgs { def, key, shop, settings, .. } = &self.args;
        let held = Held {
            server: def.key.clone(),
            what: format!("server `{}`", def.key),
            host: None,
            question: question.clone(),
            task: None,
        };
        let answering = || shop.broker.get().map(|broker| broker.hold(held));
        let me = self.me.clone();
        let tell = move |reply| {
            // A dead instance has no questions.
            let _ = me.cast(InstanceMsg::Reply { number, said: Said(reply) });
        };
        let host = shop.subs.only_host(def, &key.scope);
        if let Some(host) = host.filter(|_| question.kind() == Kind::Roots) {
            let limit = settings.daemon.ask;
            let task = task::spawn_guarded(async move {
                tell(match line_of(&host, limit).await {
                    Some(line) => line.put(&question).await,
                    None => unanswered(&question),
                });
            });
            self.unowned.insert(number, task);
            return;
        }
        match answering() {
            Some(Ok(answering)) => {
                let task = task::spawn_guarded(async move { tell(answering.await) });
                self.unowned.insert(number, task);
            }
            Some(Err(_)) | None => tell(unanswered(&question)),
        }
    }

    /// The upstream no longer wants an answer.
    pub(super) fn unasked(&mut self, number: u64) {
        self.unowned.remove(&number);
    }

    /// A question is answered.
    pub(super) fn reply(&mut self, now: Instant, number: u64, reply: Reply) {
        self.unowned.remove(&number);
        self.with_session(|session| session.answer_question(now, number, reply));
    }

    /// What a person was sent to do at a url is done.
    pub(super) fn completed(&self, id: &RawJson) {
        if let Some(watching) = &self.watching {
            watching.completed(id);
        }
    }

    /// It asks in the course of calls without saying of which. From now on it has one call at a time
    /// where several hosts share it, so that what it asks belongs to that one (product.md 8).
    pub(super) fn interactive(&self) {
        let InstanceArgs { id, def, key, shop, .. } = &self.args;
        if !key.scope.is_shared() {
            return;
        }
        if let Some(route) = &self.route {
            route.serialise();
        }
        let text = format!(
            "server `{}` asks questions without saying to which call they belong; its calls are made \
             one after the other from now on",
            def.key
        );
        let event = Event::new("server.interactive", text).of_server(def.key.as_str());
        shop.events.emit(event.of_instance(id.to_string()));
    }
}
