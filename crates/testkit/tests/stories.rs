//! All stories, on the embedded engine.

use compute_testkit::{Embedded, for_each_story, stories};

macro_rules! tell {
    ($module:ident, $story:ident) => {
        #[tokio::test]
        async fn $story() {
            stories::$module::$story(&Embedded::start().await).await;
        }
    };
}

for_each_story!(tell);
