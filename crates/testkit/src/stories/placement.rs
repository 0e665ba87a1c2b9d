//! Which cities a workload runs in.

use compute_api::compute::{Workload, WorkloadDeployment};
use compute_api::conditions as c;
use compute_api::networking::{Location, LocationBinding};
use kube::api::{DeleteParams, ListParams, ObjectMeta, PostParams};
use kube::{Api, ResourceExt as _};

use crate::objects::{placement, workload};
use crate::stack::{Place, Stack, Worker};
use crate::view::{View, list};
use crate::wait::eventually;

/// A city that joins gets instances, one that leaves loses them, and the others notice nothing.
pub async fn city_added_and_removed(stack: &impl Stack) {
    let view = View::new(stack, "cities").await;
    let cities = stack.cities();
    let (here, there) = (cities[0].as_str(), cities[1].as_str());
    let names = [here, there].map(|city| format!("web-main-{}", city.to_lowercase()));
    view.create(&workload("web", &[here], 2)).await;
    view.until_ready("web", &[(&names[0], 2)]).await;
    let first: Vec<_> = view.instances_in(here).await.values().map(|instance| instance.uid()).collect();

    view.set_placements("web", &[placement("main", &[here, there], 2)]).await;
    view.until_ready("web", &[(&names[0], 2), (&names[1], 2)]).await;
    view.set_placements("web", &[placement("main", &[there], 2)]).await;
    view.until_ready("web", &[(&names[1], 2)]).await;
    eventually("the first city is empty", async || match view.instances_in(here).await.len() {
        0 => Ok(()),
        left => Err(format!("{left} left")),
    })
    .await;
    view.set_placements("web", &[placement("main", &[here, there], 1)]).await;
    view.until_ready("web", &[(&names[0], 1), (&names[1], 1)]).await;
    let again: Vec<_> = view.instances_in(here).await.values().map(|instance| instance.uid()).collect();
    assert!(again.iter().all(|uid| !first.contains(uid)), "an instance came back from the dead");
}

/// A city whose binding goes away runs on and is scaled as before, and the workload says so.
pub async fn binding_goes_away(stack: &impl Stack) {
    let view = View::new(stack, "bindings").await;
    let city = &stack.cities()[0];
    let name = format!("web-main-{}", city.to_lowercase());
    view.create(&workload("web", &[city], 1)).await;
    view.until_ready("web", &[(&name, 1)]).await;

    let location = withdraw(&view, city).await;
    eventually("the workload says so", async || {
        let workload: Workload = view.mine().get("web").await.unwrap();
        let status = workload.status.unwrap();
        let said = c::find(&status.placements[0].conditions, c::LOCATIONS_AVAILABLE).cloned();
        let named = said.as_ref().is_some_and(|said| {
            said.reason == c::LOCATION_UNAVAILABLE && said.message.contains(city.as_str())
        });
        if named { Ok(()) } else { Err(format!("{said:?}")) }
    })
    .await;
    view.set_placements("web", &[placement("main", &[city], 2)]).await;
    view.until_ready("web", &[(&name, 2)]).await;

    give_back(stack, location).await;
    eventually("the workload does not complain any more", async || {
        let workload: Workload = view.mine().get("web").await.unwrap();
        let conditions = workload.status.unwrap().placements.remove(0).conditions;
        match c::find(&conditions, c::LOCATIONS_AVAILABLE) {
            Some(said) if said.status != "True" => Err(format!("{said:?}")),
            _ => Ok(()),
        }
    })
    .await;
}

/// A city that is not offered is refused. One that stops being offered before anything runs there gets no deployment, counts as
/// wanted, and is named.
pub async fn city_that_is_not_offered(stack: &impl Stack) {
    let view = View::new(stack, "nowhere").await;
    let cities = stack.cities();
    let (city, lost) = (cities[0].as_str(), cities[1].as_str());
    let name = format!("web-main-{}", city.to_lowercase());
    let nowhere = workload("web", &[city, "ATLANTIS"], 1);
    let refused =
        view.mine::<Workload>().create(&PostParams::default(), &nowhere).await.unwrap_err().to_string();
    for words in ["spec.placements[0].cityCodes[1]", "city ATLANTIS is not offered to this project", city] {
        assert!(refused.contains(words), "{refused}");
    }

    // Managers judge what is written and do nothing about it.
    stack.allow_writes(&Worker::Management, 0);
    view.create(&workload("web", &[city, lost], 1)).await;
    let location = withdraw(&view, lost).await;
    stack.crash(&Worker::Management).await;
    stack.start(&Worker::Management).await;
    eventually("one city of two is ready", async || {
        let status = view.mine::<Workload>().get("web").await.unwrap().status.unwrap_or_default();
        let said =
            c::find(status.placements.first().map_or(&[][..], |p| &p.conditions), c::LOCATIONS_AVAILABLE)
                .filter(|said| said.message.contains(lost) && said.reason == c::LOCATION_UNAVAILABLE);
        let counts = (status.ready_replicas, status.desired_replicas);
        if counts == (Some(1), Some(2)) && said.is_some() { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
    let deployments = list(&view.mine::<WorkloadDeployment>(), &ListParams::default()).await;
    assert_eq!(deployments.keys().collect::<Vec<_>>(), [&name]);
    give_back(stack, location).await;
    view.until_ready("web", &[(&name, 1), (&format!("web-main-{}", lost.to_lowercase()), 1)]).await;
}

/// Takes the location of a city away, and waits until the project is not offered the city any more.
async fn withdraw<S: Stack>(view: &View<'_, S>, city: &str) -> Location {
    let locations: Api<Location> = Api::all(view.stack.client(&Place::Core));
    let all = list(&locations, &ListParams::default()).await;
    let location = all
        .into_values()
        .find(|location| location.spec.city_code().is_some_and(|code| code.eq_ignore_ascii_case(city)))
        .unwrap();
    locations.delete(&location.name_any(), &DeleteParams::default()).await.unwrap();
    eventually("the city is not offered any more", async || {
        let bindings = list(&Api::<LocationBinding>::all(view.client()), &ListParams::default()).await;
        let offered = bindings.values().filter(|binding| {
            let status = binding.status.clone().unwrap_or_default();
            binding.spec.city_code().is_some_and(|code| code.eq_ignore_ascii_case(city))
                && c::is_true(&status.conditions, c::AVAILABLE)
        });
        match offered.count() {
            0 => Ok(()),
            _ => Err("it still is"),
        }
    })
    .await;
    location
}

/// Puts a location back.
async fn give_back(stack: &impl Stack, mut location: Location) {
    location.metadata = ObjectMeta { name: location.metadata.name, ..ObjectMeta::default() };
    location.status = None;
    let locations: Api<Location> = Api::all(stack.client(&Place::Core));
    locations.create(&PostParams::default(), &location).await.unwrap();
}
