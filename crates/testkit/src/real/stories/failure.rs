//! Managers that die after any one of their writes.

use crate::objects::{NEXT_IMAGE, placement, workload};
use crate::real::RealStack;
use crate::stack::{Stack as _, Worker};
use crate::view::View;
use crate::wait::eventually;

/// The management role.
pub async fn management_killed_after_each_write(stack: &RealStack) {
    let view = View::new(stack, "nth-management").await;
    killed_after_each_write(stack, &view, &Worker::Management).await;
}

/// The cell role of one city.
pub async fn cell_killed_after_each_write(stack: &RealStack) {
    let view = View::new(stack, "nth-cell").await;
    killed_after_each_write(stack, &view, &Worker::Cell(stack.cities()[0].clone())).await;
}

/// Deploys, changes and deletes a workload, and kills the worker after its first write; then all over again after its second, and so on, until there
/// are no more writes to die after.
async fn killed_after_each_write(stack: &RealStack, view: &View<'_, RealStack>, worker: &Worker) {
    let city = &stack.cities()[0];
    for writes in 1.. {
        let workload_name = format!("web-{writes}");
        let name = format!("{workload_name}-main-{}", city.to_lowercase());
        let mut pass = Pass { stack, view, worker, died: false };
        stack.allow_writes(worker, writes);
        view.create(&workload(&workload_name, &[city], 1)).await;
        pass.until_ready(&workload_name, &[(&name, 1)]).await;
        view.set_placements(&workload_name, &[placement("main", &[city], 2)]).await;
        view.set_image(&workload_name, NEXT_IMAGE).await;
        pass.until_ready(&workload_name, &[(&name, 2)]).await;
        view.delete(&workload_name).await;
        pass.until("it is gone", async || view.is_gone(&workload_name).await).await;
        if !pass.died {
            assert!(writes > 5, "{worker:?} does it all with {writes} writes");
            stack.wires.unlimited(worker);
            return;
        }
    }
}

/// One pass, in which the worker dies once.
struct Pass<'a> {
    stack: &'a RealStack,
    view: &'a View<'a, RealStack>,
    worker: &'a Worker,
    died: bool,
}

impl Pass<'_> {
    async fn until_ready(&mut self, workload: &str, wanted: &[(&str, usize)]) {
        let view = self.view;
        self.until(&format!("{workload} is ready"), async || view.is_ready(workload, wanted).await).await;
    }

    /// Waits until something holds. If the worker dies before that, it is started again.
    async fn until(&mut self, what: &str, mut holds: impl AsyncFnMut() -> Result<(), String>) {
        let (stack, worker) = (self.stack, self.worker);
        if !self.died {
            let died = eventually(what, async || {
                if stack.is_out_of_writes(worker) { Ok(true) } else { holds().await.map(|()| false) }
            })
            .await;
            if !died {
                return;
            }
            self.died = true;
            stack.crash(worker).await;
            stack.start(worker).await;
        }
        eventually(what, holds).await;
    }
}
