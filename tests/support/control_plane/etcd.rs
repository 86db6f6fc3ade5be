//! The bytes in etcd, read through its JSON gateway: what the API server really stored, not what it converts to.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::support::{Error, Result};

/// One stored record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawRecord {
    /// etcd key: `/registry/<group>/<plural>/<namespace>/<name>`.
    pub key: String,
    /// `apiVersion` in the stored bytes; custom resources are stored as JSON.
    pub api_version: String,
    /// The stored bytes.
    pub value: Vec<u8>,
    /// How often the record has been written since it was created.
    pub writes: u64,
}

impl RawRecord {
    /// `namespace/name`, or the name alone.
    pub fn object(&self) -> &str {
        self.key.splitn(5, '/').nth(4).unwrap_or_default()
    }

    /// The stored object; null where it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.value).unwrap_or_default()
    }
}

/// What is stored.
#[derive(Clone)]
pub struct Etcd(sbx::control_plane::Etcd);

impl Etcd {
    pub(super) fn new(etcd: sbx::control_plane::Etcd) -> Self {
        Self(etcd)
    }

    /// Every record whose key starts with `prefix`, by key.
    pub async fn range(&self, prefix: &str) -> Result<Vec<RawRecord>> {
        let mut end = prefix.as_bytes().to_vec();
        *end.last_mut().ok_or("an empty prefix")? += 1;
        let answer = self
            .0
            .call("/v3/kv/range", &json!({"key": ByteString(prefix.as_bytes().to_vec()), "range_end": ByteString(end)}))
            .await?;
        answer["kvs"].as_array().into_iter().flatten().map(record).collect()
    }

    /// Puts bytes in the API server's place: faults that it would never write itself.
    pub async fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        Ok(self.0.put(key, value).await?)
    }

    /// Forgets every revision before the current one: continue tokens and watches that start there have expired.
    pub async fn compact(&self) -> Result<()> {
        let now = self.0.call("/v3/kv/range", &json!({"key": ByteString(b"/".to_vec())})).await?;
        let revision = now.pointer("/header/revision").ok_or("etcd names no revision")?;
        self.0.call("/v3/kv/compaction", &json!({"revision": revision, "physical": true})).await?;
        Ok(())
    }
}

fn record(record: &Value) -> Result<RawRecord> {
    let bytes = |field: &str| -> Result<Vec<u8>> {
        let value = record.get(field).cloned().unwrap_or_else(|| json!(""));
        Ok(serde_json::from_value::<ByteString>(value)?.0)
    };
    let (key, value) = (bytes("key")?, bytes("value")?);
    let object: Value = serde_json::from_slice(&value).unwrap_or_default();
    let api_version = object["apiVersion"].as_str().unwrap_or("not JSON").to_owned();
    let key = String::from_utf8(key).map_err(|error| Error::from(format!("an etcd key is no text: {error}")))?;
    // 64-bit numbers are strings in JSON.
    let writes = record["version"].as_str().ok_or("a record without a version")?.parse()?;
    Ok(RawRecord { key, api_version, value, writes })
}
