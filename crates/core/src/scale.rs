//! How many instances a deployment wants.

use compute_api::compute::{ScaleSettings, WorkloadDeploymentSpec};

/// The most instances that one deployment has, whatever it says. Ordinals of an instance's name stay within
/// four digits by this.
pub const MAX_REPLICAS: i64 = 1000;

/// How many instances the deployment wants: `replicas` within its scale settings, else their minimum.
pub fn desired_replicas(spec: &WorkloadDeploymentSpec) -> u32 {
    let minimum = min_replicas(&spec.scale_settings);
    let maximum = spec.scale_settings.max_replicas.unwrap_or(MAX_REPLICAS).clamp(0, MAX_REPLICAS);
    let wanted = spec.replicas.map_or(i64::from(minimum), |replicas| replicas.min(maximum));
    bounded(wanted).max(minimum)
}

/// The fewest instances that the settings allow.
pub fn min_replicas(settings: &ScaleSettings) -> u32 {
    bounded(settings.min_replicas)
}

fn bounded(replicas: i64) -> u32 {
    u32::try_from(replicas.clamp(0, MAX_REPLICAS)).expect("a number between 0 and 1000 fits")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desired(replicas: Option<i64>, min: i64, max: Option<i64>) -> u32 {
        let scale_settings =
            ScaleSettings { min_replicas: min, max_replicas: max, ..ScaleSettings::default() };
        desired_replicas(&WorkloadDeploymentSpec { replicas, scale_settings, ..Default::default() })
    }

    #[test]
    fn replicas_stay_within_the_settings() {
        assert_eq!(desired(None, 2, Some(5)), 2);
        assert_eq!(desired(Some(3), 2, Some(5)), 3);
        assert_eq!(desired(Some(0), 2, Some(5)), 2);
        assert_eq!(desired(Some(9), 2, Some(5)), 5);
        assert_eq!(desired(Some(9), 2, None), 9);
    }

    #[test]
    fn nonsense_stays_within_bounds() {
        assert_eq!(desired(None, -3, None), 0);
        assert_eq!(desired(None, i64::MAX, None), 1000);
        assert_eq!(desired(Some(i64::MAX), 0, Some(i64::MAX)), 1000);
        assert_eq!(desired(Some(i64::MIN), 0, Some(-1)), 0);
        // A maximum below the minimum: the minimum is what was promised.
        assert_eq!(desired(Some(4), 3, Some(1)), 3);
    }
}
