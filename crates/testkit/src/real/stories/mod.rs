//! Stories that only a stack with processes of its own can tell.

pub mod failure;
pub mod leader;
pub mod outage;
pub mod person;
pub mod rights;
pub mod rotation;
pub mod stray;
pub mod upgrade;

/// Calls a macro with the module and the name of every story that only this stack tells.
#[macro_export]
macro_rules! for_each_real_story {
    ($tell:ident) => {
        $tell!(leader, leader_killed);
        $tell!(failure, management_killed_after_each_write);
        $tell!(failure, cell_killed_after_each_write);
        $tell!(outage, karmada_stopped_for_a_while);
        $tell!(outage, cell_api_server_stopped_for_a_while);
        $tell!(outage, quota_backend_down_for_a_while);
        $tell!(rotation, credentials_are_renewed_while_work_goes_on);
        $tell!(person, works_with_the_command_line);
        $tell!(stray, instance_without_a_project);
        $tell!(upgrade, kinds_are_brought_up_to_date);
        $tell!(rights, nothing_is_refused);
        $tell!(rights, every_right_is_used);
    };
}
