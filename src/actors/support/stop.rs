//! Stopping what an actor has under it, before it ends itself.

use ractor::ActorCell;

/// Stops all children of `me` at once and waits until they have ended. Not with ractor's own
/// `stop_children_and_wait`: that one waits in tasks, and panics where the runtime ends before them.
pub async fn children(me: &ActorCell) {
    let children = me.get_children();
    for child in &children {
        child.stop(None);
    }
    for child in &children {
        // Without a limit it does not fail.
        let _ = child.wait(None).await;
    }
}
