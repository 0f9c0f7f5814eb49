//! Verification of server certificates if rustls' own check is not used.

use std::sync::{Arc, LazyLock, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};

/// The authorities of the system, read once: each of several APIs has clients of its own.
pub(super) static SYSTEM_ROOTS: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    }
    Arc::new(roots)
});

/// Checks certificates as [`AcceptedCertificates`] says. The handshake itself must always be signed
/// with the certificate's key.
#[derive(Debug)]
pub(super) struct CertificateVerifier {
    pub(super) provider: Arc<CryptoProvider>,
    pub(super) accepted: AcceptedCertificates,
}

#[derive(Debug)]
pub(super) enum AcceptedCertificates {
    /// Certificates of the system's authorities, which are read on first use: that takes longer
    /// than to serve a small document, and many servers are started to list their tools alone.
    OfSystem(OnceLock<Result<Arc<WebPkiServerVerifier>, VerifierBuilderError>>),
    /// Certificates of these authorities, and those that the operator names themselves.
    Named(Arc<WebPkiServerVerifier>, Vec<CertificateDer<'static>>),
    All,
}

/// Verifies what the roots have signed.
///
/// # Errors
/// No root can be used.
pub(super) fn verifier_of(
    roots: &Arc<RootCertStore>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, VerifierBuilderError> {
    let (roots, provider) = (Arc::clone(roots), Arc::clone(provider));
    WebPkiServerVerifier::builder_with_provider(roots, provider).build()
}

/// Returns true if the only fault of a certificate that is valid at this time is that it is one of an
/// authority, as self-signed certificates often are.
pub(crate) fn is_of_authority(error: &rustls::Error) -> bool {
    error.to_string().contains("CaUsedAsEndEntity")
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let (verifier, named) = match &self.accepted {
            AcceptedCertificates::All => return Ok(ServerCertVerified::assertion()),
            AcceptedCertificates::Named(verifier, named) => (verifier, named.as_slice()),
            AcceptedCertificates::OfSystem(verifier) => {
                let verifier = verifier.get_or_init(|| verifier_of(&SYSTEM_ROOTS, &self.provider));
                let unusable =
                    |error: &VerifierBuilderError| rustls::Error::General(error.to_string());
                (verifier.as_ref().map_err(unusable)?, [].as_slice())
            }
        };
        match verifier.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(error) if is_of_authority(&error) && named.contains(certificate) => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.provider.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
