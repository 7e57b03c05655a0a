//! The supervision tree as it stands: the actors themselves, with what they say of themselves.

use std::collections::{BTreeMap, HashMap};

use ractor::{ActorCell, ActorStatus};

use super::chronicle::{Chronicle, Failure};
use crate::actors::dispatch::Context;

/// One actor and what it supervises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What it is: `Root`, `Pool`, `Instance`, ….
    pub kind: &'static str,
    /// Its number in this process.
    pub actor: u64,
    /// What it is for: a server, a host; empty where its kind says all.
    pub name: String,
    /// `running`, or what it is on its way to; of a pool and its instances, their own word.
    pub state: String,
    /// When it was started, in milliseconds since 1970, where that is remembered.
    pub since_ms: Option<u64>,
    /// How often it was started again.
    pub restarts: u32,
    /// The last restarts, oldest first.
    pub history: Vec<(u64, String)>,
    /// Those that it supervises.
    pub children: Vec<Self>,
}

/// How many actors there are of each kind.
pub(super) fn census(chronicle: &Chronicle) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    let Some(root) = chronicle.top() else { return counts };
    let names: HashMap<_, _> =
        chronicle.parts().iter().map(|part| (part.cell.get_id(), part.name)).collect();
    counts.insert("Root", 1);
    for child in root.get_children() {
        let kind = names.get(&child.get_id()).copied().unwrap_or(OTHER);
        count(&child, kind, &mut counts);
    }
    counts
}

/// What an actor is that the root does not know, such as one that is just being started.
const OTHER: &str = "other";

fn count(cell: &ActorCell, kind: &'static str, counts: &mut BTreeMap<&'static str, usize>) {
    *counts.entry(kind).or_default() += 1;
    for child in cell.get_children() {
        count(&child, below(kind), counts);
    }
}

/// What a supervisor of this kind supervises; each has one kind of children.
fn below(kind: &str) -> &'static str {
    match kind {
        "Upstreams" => "Pool",
        "Pool" => "Instance",
        "Hosts" => "Host",
        "Tasks" => "Task",
        "Listens" => "Listen",
        "Exec" => "Worker",
        _ => OTHER,
    }
}

/// What is known of an actor beside the actor itself.
#[derive(Debug, Default)]
struct Known {
    name: String,
    state: Option<String>,
    restarts: u32,
    history: Vec<(u64, String)>,
}

/// The whole tree; `None` before the root runs.
pub async fn grow(context: &Context) -> Option<Node> {
    let chronicle = &context.inside.chronicle;
    let root = chronicle.top()?;
    let (known, failures) = (known(context).await, chronicle.failures());
    let mut parts = chronicle.parts();
    let mut node = leaf(&root, "Root", &known);
    // In the order of their start, as the drawing in `actors/mod.rs` has them.
    for child in root.get_children() {
        if !parts.iter().any(|part| part.cell.get_id() == child.get_id()) {
            node.children.push(branch(&child, OTHER, &known));
        }
    }
    for part in parts.drain(..) {
        let mut child = branch(&part.cell, part.name, &known);
        let own = |failure: &&Failure| failure.part == part.name;
        child.since_ms = Some(part.since_ms);
        child.restarts = part.restarts;
        child.history =
            failures.iter().filter(own).map(|one| (one.at_ms, one.why.clone())).collect();
        node.children.push(child);
    }
    Some(node)
}

fn branch(cell: &ActorCell, kind: &'static str, known: &HashMap<u64, Known>) -> Node {
    let mut node = leaf(cell, kind, known);
    node.children =
        cell.get_children().iter().map(|child| branch(child, below(kind), known)).collect();
    node.children.sort_by(|a, b| (&a.name, a.actor).cmp(&(&b.name, b.actor)));
    node
}

fn leaf(cell: &ActorCell, kind: &'static str, known: &HashMap<u64, Known>) -> Node {
    let actor = cell.get_id().pid();
    let known = known.get(&actor);
    let state = known.and_then(|known| known.state.clone());
    Node {
        kind,
        actor,
        name: known.map(|known| known.name.clone()).unwrap_or_default(),
        state: state.unwrap_or_else(|| word(cell.get_status()).to_owned()),
        since_ms: None,
        restarts: known.map_or(0, |known| known.restarts),
        history: known.map(|known| known.history.clone()).unwrap_or_default(),
        children: Vec::new(),
    }
}

const fn word(status: ActorStatus) -> &'static str {
    match status {
        ActorStatus::Unstarted | ActorStatus::Starting => "starting",
        ActorStatus::Running | ActorStatus::Upgrading => "running",
        ActorStatus::Draining | ActorStatus::Stopping => "stopping",
        ActorStatus::Stopped => "stopped",
    }
}

/// What pools and hosts say of themselves, by their actors' numbers.
async fn known(context: &Context) -> HashMap<u64, Known> {
    let mut all = HashMap::new();
    for status in context.upstreams.status().await {
        let meter = context.upstreams.meters().of(&status.server);
        for instance in &status.instances {
            let state = Some(instance.state.to_owned());
            let name = format!("{}#{} {}", status.server, instance.id, instance.scope);
            all.insert(instance.actor, Known { name, state, ..Known::default() });
        }
        let state = Some(status.state.to_owned());
        let (restarts, history) = (status.restarts, meter.history());
        all.insert(status.actor, Known { name: status.server, state, restarts, history });
    }
    let limit = context.settings().daemon.ask;
    for host in context.hosts.status(limit).await.unwrap_or_default() {
        let state = Some("running".to_owned());
        let name = format!("{}#{} {}", host.label, host.id, host.transport);
        all.insert(host.actor, Known { name, state, ..Known::default() });
    }
    all
}
