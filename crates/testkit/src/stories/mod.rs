//! The stories: what the whole system does, told by what is to be seen on its planes.

pub mod admission;
pub mod failure;
pub mod federation;
pub mod identity;
pub mod outage;
pub mod placement;
pub mod quota;
pub mod rollout;
pub mod scale;

/// Calls a macro with the module and the name of every story that any stack tells.
#[macro_export]
macro_rules! for_each_story {
    ($tell:ident) => {
        $tell!(federation, workload_deployment_federation);
        $tell!(federation, propagation_policy_lifecycle);
        $tell!(federation, instance_writeback);
        $tell!(federation, instance_projection);
        $tell!(federation, full_federation);
        $tell!(federation, deletion_cascade);
        $tell!(federation, status_from_cell_to_project);
        $tell!(placement, city_added_and_removed);
        $tell!(placement, binding_goes_away);
        $tell!(placement, city_that_is_not_offered);
        $tell!(quota, used_up_and_freed);
        $tell!(scale, up_and_down_by_ordinal);
        $tell!(scale, to_zero_and_back);
        $tell!(scale, one_city_by_its_own_scale);
        $tell!(rollout, image_change_rolls_one_at_a_time);
        $tell!(rollout, bad_image_then_good_image_heals);
        $tell!(rollout, restart_of_a_workload_and_of_one_city);
        $tell!(rollout, pause_and_resume);
        $tell!(rollout, label_back_fill_does_not_roll);
        $tell!(identity, two_projects_with_the_same_names);
        $tell!(identity, recreated_during_the_cascade);
        $tell!(identity, names_that_collide_and_free_up_again);
        $tell!(identity, names_that_are_too_long);
        $tell!(identity, status_of_a_predecessor_is_not_believed);
        $tell!(identity, project_deleted);
        $tell!(identity, instance_edited_or_deleted_by_hand_in_the_project);
        $tell!(admission, bad_workload_is_refused_whole);
        $tell!(admission, instances_are_read_only_for_people);
        $tell!(outage, hub_down_for_a_while);
        $tell!(outage, core_down_for_a_while);
        $tell!(outage, one_project_down_while_others_work);
        $tell!(outage, cell_down_for_a_while);
        $tell!(outage, cell_back_after_its_workload_was_deleted);
        $tell!(outage, scale_down_while_the_hub_is_down);
        $tell!(failure, managers_restarted);
        $tell!(failure, undecodable_object_among_good_ones);
    };
}
