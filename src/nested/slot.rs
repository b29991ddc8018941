//! The slot that a call of the batch runs in, with all calls below it.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::{self, Either};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// One of the slots that `--jobs` bounds.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    slots: Option<Arc<Semaphore>>,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Slot {
    /// Waits for a slot; at once where there is no bound.
    pub(crate) async fn take(slots: Option<Arc<Semaphore>>) -> Self {
        let permit = match &slots {
            Some(slots) => Some(acquire(slots).await),
            None => None,
        };
        Self {
            slots,
            permit: Mutex::new(permit),
        }
    }

    /// Waits, and lets somebody else have the slot meanwhile: the file that is waited for may be held by a call
    /// that itself waits for a slot.
    pub(crate) async fn lend_while(&self, wait: impl Future<Output = ()>) {
        let wait = pin!(wait);
        let Either::Right(((), wait)) = future::select(wait, future::ready(())).await else {
            return;
        };
        let lent = self.lock().take();
        let (Some(slots), true) = (&self.slots, lent.is_some()) else {
            return wait.await;
        };
        drop(lent);
        wait.await;
        let permit = acquire(slots).await;
        *self.lock() = Some(permit);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn acquire(slots: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    let slots = Arc::clone(slots);
    slots.acquire_owned().await.expect("it is never closed")
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn slot_is_free_for_others_while_it_is_lent() {
        let slots = Arc::new(Semaphore::new(1));
        let slot = Slot::take(Some(Arc::clone(&slots))).await;
        assert_eq!(slots.available_permits(), 0);
        slot.lend_while(future::ready(())).await;
        assert_eq!(slots.available_permits(), 0, "no wait, no loan");

        let (done, waits) = tokio::sync::oneshot::channel::<()>();
        let mut lending = Box::pin(slot.lend_while(waits.map(|_| ())));
        assert!((&mut lending).now_or_never().is_none());
        let other = Arc::clone(&slots).try_acquire_owned().unwrap();
        done.send(()).unwrap();
        assert!((&mut lending).now_or_never().is_none(), "somebody has it");
        drop(other);
        lending.await;
        assert_eq!(slots.available_permits(), 0);
    }
}
