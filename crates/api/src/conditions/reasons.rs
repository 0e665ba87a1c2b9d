//! Every reason that our controllers and providers write, by the condition that carries it.
//!
//! A reason is part of the contract: people and software match on it. Its message may change, the word not.

// Any condition.

/// No controller has looked yet.
pub const PENDING: &str = "Pending";

// `Available` of a Workload and its placements.

/// No placement is available.
pub const NO_AVAILABLE_PLACEMENTS: &str = "NoAvailablePlacements";
/// No deployment of the placement is available.
pub const NO_AVAILABLE_DEPLOYMENTS: &str = "NoAvailableDeployments";
/// A network that the template names does not exist.
pub const NETWORK_NOT_FOUND: &str = "NetworkNotFound";
/// A city is not offered to the project.
pub const LOCATION_UNAVAILABLE: &str = "LocationUnavailable";

// `Available` of a WorkloadDeployment.

/// At least one instance is ready.
pub const STABLE_INSTANCE_FOUND: &str = "StableInstanceFound";
/// No instance is wanted.
pub const SCALED_TO_ZERO: &str = "ScaledToZero";
/// No cell serves the city.
pub const NO_MATCHING_LOCATION: &str = "NoMatchingLocation";
/// The cell does not answer; what is known of it is old.
pub const CELL_NOT_READY: &str = "CellNotReady";
/// Instances wait for quota.
pub const QUOTA_NOT_GRANTED: &str = "QuotaNotGranted";
/// Instances wait for a ConfigMap or Secret.
pub const REFERENCED_DATA_NOT_READY: &str = "ReferencedDataNotReady";
/// Instances are being set up.
pub const INSTANCES_PROVISIONING: &str = "InstancesProvisioning";

// Networks.

/// The networks are being set up.
pub const NETWORK_PROVISIONING: &str = "NetworkProvisioning";
/// A network cannot be set up.
pub const NETWORK_FAILED_TO_CREATE: &str = "NetworkFailedToCreate";

// `QuotaGranted` of an Instance.

/// No quota is configured at all.
pub const QUOTA_DISABLED: &str = "QuotaDisabled";
/// The claim is not made, or not evaluated.
pub const PENDING_EVALUATION: &str = "PendingEvaluation";
/// The claim is granted.
pub const QUOTA_AVAILABLE: &str = "QuotaAvailable";
/// The claim is denied: not enough is left.
pub const QUOTA_EXCEEDED: &str = "QuotaExceeded";
/// The project has no budget for what is claimed.
pub const QUOTA_NO_BUDGET: &str = "QuotaNoBudget";
/// The ledger cannot be reached.
pub const QUOTA_BACKEND_UNAVAILABLE: &str = "QuotaBackendUnavailable";
/// The namespace does not say which project it belongs to.
pub const QUOTA_PROJECT_ID_UNRESOLVABLE: &str = "QuotaProjectIDUnresolvable";
/// The project has no such namespace.
pub const QUOTA_NAMESPACE_NOT_FOUND: &str = "QuotaNamespaceNotFound";
/// There is no such project.
pub const QUOTA_PROJECT_NOT_FOUND: &str = "QuotaProjectNotFound";
/// The ledger refuses the claim as such.
pub const QUOTA_MISCONFIGURED: &str = "QuotaMisconfigured";
/// The ledger calls the claim invalid.
pub const VALIDATION_FAILED: &str = "ValidationFailed";

// `ReferencedDataReady` of an Instance (True is `Ready`).

/// It is not known yet what the template names.
pub const RESOLVING: &str = "Resolving";
/// The data is on its way to the cell.
pub const AWAITING_PROPAGATION: &str = "AwaitingPropagation";
/// A ConfigMap or Secret does not exist, or lacks a key.
pub const SOURCE_NOT_FOUND: &str = "SourceNotFound";
/// A ConfigMap or Secret may not be read.
pub const SOURCE_UNAUTHORIZED: &str = "SourceUnauthorized";
/// A ConfigMap or Secret, or all of them together, is too large.
pub const SOURCE_TOO_LARGE: &str = "SourceTooLarge";
/// Everything is there. Also the reason of a `NetworkReady` that is True.
pub const DATA_READY: &str = "Ready";

// `Programmed` and `Available` of an Instance, written by providers.

/// The provider has not begun.
pub const PENDING_PROGRAMMING: &str = "PendingProgramming";
/// The provider is setting the instance up.
pub const PROGRAMMING_IN_PROGRESS: &str = "ProgrammingInProgress";
/// The provider has set the instance up.
pub const INSTANCE_PROGRAMMED: &str = "Programmed";
/// The instance runs. Also the reason of a `Ready` that is True.
pub const INSTANCE_AVAILABLE: &str = "Available";
/// The instance is starting.
pub const STARTING: &str = "Starting";
/// The instance is stopping.
pub const STOPPING: &str = "Stopping";
/// The instance has stopped.
pub const STOPPED: &str = "Stopped";
/// The image cannot be fetched.
pub const IMAGE_UNAVAILABLE: &str = "ImageUnavailable";
/// The process ends again and again.
pub const INSTANCE_CRASHING: &str = "InstanceCrashing";
/// The instance cannot start as it is configured.
pub const CONFIGURATION_ERROR: &str = "ConfigurationError";
/// The runtime is getting the instance ready, or says something unknown.
pub const PROVISIONING: &str = "Provisioning";

// `Ready` of an Instance, when it has no better reason to give.

/// The quota gate is still there.
pub const PENDING_QUOTA: &str = "PendingQuota";
/// Some gate is still there.
pub const SCHEDULING_GATES_PRESENT: &str = "SchedulingGatesPresent";

/// All of the above, each once.
pub const ALL_REASONS: [&str; 44] = [
    PENDING,
    NO_AVAILABLE_PLACEMENTS,
    NO_AVAILABLE_DEPLOYMENTS,
    NETWORK_NOT_FOUND,
    LOCATION_UNAVAILABLE,
    STABLE_INSTANCE_FOUND,
    SCALED_TO_ZERO,
    NO_MATCHING_LOCATION,
    CELL_NOT_READY,
    QUOTA_NOT_GRANTED,
    REFERENCED_DATA_NOT_READY,
    INSTANCES_PROVISIONING,
    NETWORK_PROVISIONING,
    NETWORK_FAILED_TO_CREATE,
    QUOTA_DISABLED,
    PENDING_EVALUATION,
    QUOTA_AVAILABLE,
    QUOTA_EXCEEDED,
    QUOTA_NO_BUDGET,
    QUOTA_BACKEND_UNAVAILABLE,
    QUOTA_PROJECT_ID_UNRESOLVABLE,
    QUOTA_NAMESPACE_NOT_FOUND,
    QUOTA_PROJECT_NOT_FOUND,
    QUOTA_MISCONFIGURED,
    VALIDATION_FAILED,
    RESOLVING,
    AWAITING_PROPAGATION,
    SOURCE_NOT_FOUND,
    SOURCE_UNAUTHORIZED,
    SOURCE_TOO_LARGE,
    DATA_READY,
    PENDING_PROGRAMMING,
    PROGRAMMING_IN_PROGRESS,
    INSTANCE_PROGRAMMED,
    INSTANCE_AVAILABLE,
    STARTING,
    STOPPING,
    STOPPED,
    IMAGE_UNAVAILABLE,
    INSTANCE_CRASHING,
    CONFIGURATION_ERROR,
    PROVISIONING,
    PENDING_QUOTA,
    SCHEDULING_GATES_PRESENT,
];
