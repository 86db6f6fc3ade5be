//! The authority by which the API server knows a conversion webhook: the certificates in a CRD's `caBundle`. Pure.
//!
//! An expired one fails every conversion with an x509 error that names no date; a bundle without a certificate
//! keeps a new CRD from being served at all (from 1.31 on).

use data_encoding::BASE64;
use jiff::{SignedDuration, Timestamp};
use x509_parser::pem::Pem;

use crate::{crd::Crd, plan::Finding};

/// Where a CRD holds it.
const AT: &str = "/spec/conversion/webhook/clientConfig/caBundle";
/// An authority that expires within this time is told.
const SOON: SignedDuration = SignedDuration::from_hours(14 * 24);
/// What to do about it.
const RENEW: &str = "renew the certificate; a controller that makes its own does so when its Secret is gone and it \
                     starts again, and puts the new authority into the CRDs";

/// From when until when a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Validity {
    from: Timestamp,
    until: Timestamp,
}

/// What is wrong with the authority of a CRD's conversion webhook, if anything is.
///
/// `needless`: nothing is left that would have to be converted, so a dead webhook stops nothing.
pub(super) fn finding(crd: &Crd, now: Timestamp, needless: bool) -> Option<Finding> {
    // Without a bundle the API server trusts what its host trusts.
    let bundle = crd.object.str(AT).filter(|_| crd.converts_by_webhook)?;
    let bytes = BASE64.decode(bundle.as_bytes()).unwrap_or_default();
    let found = certificates(&bytes);
    // Of several, as in a rotation, one that is valid is enough.
    let longest = found.iter().filter(|validity| validity.from <= now).max_by_key(|validity| validity.until);
    let (text, harmless) = match longest {
        Some(valid) if valid.until > now.checked_add(SOON).unwrap_or(Timestamp::MAX) => return None,
        Some(valid) if valid.until > now => {
            (format!("the authority of its conversion webhook expires on {:.0}", valid.until), true)
        }
        Some(expired) => (format!("the authority of its conversion webhook expired on {:.0}", expired.until), needless),
        None if bundle.is_empty() => return None,
        None => match found.iter().map(|validity| validity.from).min() {
            Some(from) => (format!("the authority of its conversion webhook is valid from {from:.0} on"), needless),
            None => ("the caBundle of its conversion webhook holds no certificate".into(), needless),
        },
    };
    let finding = if harmless { Finding::warning(text) } else { Finding::blocker(text) };
    Some(finding.hint(RENEW).about(crd.object.reference()))
}

/// The certificates of a PEM bundle; what is none is passed over, as the API server does.
fn certificates(pem: &[u8]) -> Vec<Validity> {
    let blocks = Pem::iter_from_buffer(pem).filter_map(Result::ok).filter(|block| block.label == "CERTIFICATE");
    let validity = |block: Pem| {
        let validity = block.parse_x509().ok()?.validity().clone();
        let [from, until] = [validity.not_before, validity.not_after]
            .map(|time| Timestamp::from_second(time.timestamp()).unwrap_or(Timestamp::MAX));
        Some(Validity { from, until })
    };
    blocks.filter_map(validity).collect()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};
    use serde_json::json;

    use super::*;
    use crate::{object::Object, plan::Grade};

    const NOW: &str = "2026-12-01T12:00:00Z";

    /// A certificate that is valid from one day to another.
    fn certificate(from: (i32, u8, u8), until: (i32, u8, u8)) -> String {
        let mut params = CertificateParams::new(vec!["w".into()]).expect("a name");
        params.not_before = date_time_ymd(from.0, from.1, from.2);
        params.not_after = date_time_ymd(until.0, until.1, until.2);
        let key = KeyPair::generate().expect("a key");
        params.self_signed(&key).expect("a certificate").pem()
    }

    fn crd(bundle: &str) -> Crd {
        let bundle = BASE64.encode(bundle.as_bytes());
        let conversion = json!({"strategy": "Webhook", "webhook": {"clientConfig": {"caBundle": bundle}}});
        Crd::of(Object(json!({"metadata": {"name": "w"}, "spec": {"conversion": conversion}})))
    }

    #[test]
    fn an_authority_is_judged_by_its_dates() {
        let now = NOW.parse().expect("a time");
        let good = certificate((2026, 1, 1), (2027, 1, 1));
        let expired = certificate((2025, 11, 30), (2026, 11, 30));
        let ending = certificate((2026, 1, 1), (2026, 12, 10));
        let coming = certificate((2026, 12, 2), (2027, 12, 2));
        let said = "the authority of its conversion webhook";
        let table = [
            (good.clone(), None),
            (String::new(), None),
            (format!("{expired}{good}"), None),
            (format!("{coming}{good}"), None),
            (expired.clone(), Some((Grade::Blocker, format!("{said} expired on 2026-11-30T00:00:00Z")))),
            (ending, Some((Grade::Warning, format!("{said} expires on 2026-12-10T00:00:00Z")))),
            (coming, Some((Grade::Blocker, format!("{said} is valid from 2026-12-02T00:00:00Z on")))),
            ("\n".into(), Some((Grade::Blocker, "the caBundle of its conversion webhook holds no certificate".into()))),
        ];
        for (bundle, wanted) in table {
            let found = finding(&crd(&bundle), now, false).map(|finding| (finding.grade, finding.text));
            assert_eq!(found, wanted, "{bundle}");
        }
        let needless = finding(&crd(&expired), now, true).map(|finding| finding.grade);
        assert_eq!(needless, Some(Grade::Warning), "nothing is left to convert");
    }
}
