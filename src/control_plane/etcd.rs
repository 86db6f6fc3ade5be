//! etcd through its JSON gateway: records as they are stored, past every rule of the API server.

use http::Request;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use super::ControlPlaneError;

/// etcd at its client address, over plain HTTP. Clones are the same connection.
#[derive(Clone)]
pub struct Etcd {
    client: kube::Client,
}

impl Etcd {
    /// At an address such as `http://127.0.0.1:2379`.
    ///
    /// # Errors
    /// It is no address.
    pub fn new(url: &str) -> Result<Self, ControlPlaneError> {
        let fail = |why: String| ControlPlaneError::asked("reach etcd", why);
        super::use_ring();
        let url = url.parse().map_err(|error| fail(format!("`{url}`: {error}")))?;
        let client = kube::Client::try_from(kube::Config::new(url)).map_err(|error| fail(error.to_string()))?;
        Ok(Self { client })
    }

    /// Stores bytes under a key, in the API server's place.
    ///
    /// # Errors
    /// etcd's answer.
    pub async fn put(&self, key: &str, value: &[u8]) -> Result<(), ControlPlaneError> {
        let body = json!({"key": ByteString(key.as_bytes().to_vec()), "value": ByteString(value.to_vec())});
        self.call("/v3/kv/put", &body).await.map(drop)
    }

    /// Any call of the gateway, such as `/v3/kv/range`.
    ///
    /// # Errors
    /// etcd's answer.
    pub async fn call(&self, path: &str, body: &Value) -> Result<Value, ControlPlaneError> {
        let fail = |why: String| ControlPlaneError::asked(&format!("ask etcd: {path}"), why);
        let request =
            Request::post(path).body(body.to_string().into_bytes()).map_err(|error| fail(error.to_string()))?;
        self.client.request(request).await.map_err(|error| fail(error.to_string()))
    }
}
