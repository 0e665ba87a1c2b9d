//! Reasons that the stand-ins for the platform around write, where they are not among our own.
//!
//! On a real platform its services write these conditions, with reasons of theirs.

// `Ready` of a Project.

/// The project's name cannot be that of a control plane.
pub const INVALID_NAME: &str = "InvalidName";
/// The project's control plane cannot be made, or does not answer.
pub const CONTROL_PLANE_NOT_AVAILABLE: &str = "ControlPlaneNotAvailable";
/// The project is being emptied.
pub const DELETING: &str = "Deleting";

// `Ready` of a ServiceEntitlement (True is `Ready`).

/// There is no such service.
pub const SERVICE_NOT_FOUND: &str = "ServiceNotFound";
/// The service is being activated.
pub const ACTIVATING: &str = "Activating";

// `Available` of a LocationBinding (True is `Available`).

/// The project has no access to the service.
pub const NOT_ENTITLED: &str = "NotEntitled";
/// The service does not support locations of that class.
pub const LOCATION_CLASS_NOT_SUPPORTED: &str = "LocationClassNotSupported";
/// The location is being removed.
pub const LOCATION_TERMINATING: &str = "LocationTerminating";
/// The location is not ready.
pub const LOCATION_NOT_READY: &str = "LocationNotReady";

// `Ready` of a Cluster.

/// The cell answers.
pub const CLUSTER_READY: &str = "ClusterReady";
/// The cell does not answer.
pub const CLUSTER_NOT_REACHABLE: &str = "ClusterNotReachable";

// `Ready` of a NetworkBinding, NetworkContext, SubnetClaim and Subnet (True is `Ready`).

/// Nobody has set addresses aside for the location yet.
pub const ADDRESSES_PENDING: &str = "AddressesPending";
/// The network has no room left in the location.
pub const ADDRESSES_EXHAUSTED: &str = "AddressesExhausted";
/// The addresses that are asked for are taken.
pub const ADDRESSES_DENIED: &str = "AddressesDenied";
/// What is asked for is no subnet.
pub const INVALID_REQUEST: &str = "InvalidRequest";
/// The object was told to fail.
pub const SIMULATED_FAILURE: &str = "SimulatedFailure";

/// All of the above, each once.
pub const ALL_PLATFORM_REASONS: [&str; 16] = [
    INVALID_NAME,
    CONTROL_PLANE_NOT_AVAILABLE,
    DELETING,
    SERVICE_NOT_FOUND,
    ACTIVATING,
    NOT_ENTITLED,
    LOCATION_CLASS_NOT_SUPPORTED,
    LOCATION_TERMINATING,
    LOCATION_NOT_READY,
    CLUSTER_READY,
    CLUSTER_NOT_REACHABLE,
    ADDRESSES_PENDING,
    ADDRESSES_EXHAUSTED,
    ADDRESSES_DENIED,
    INVALID_REQUEST,
    SIMULATED_FAILURE,
];
