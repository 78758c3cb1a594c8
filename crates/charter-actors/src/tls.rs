//! TLS with the certificates of `SSL_CERT_FILE`: roots, and servers that present one of them
//! themselves, as `openssl req -x509` makes it. Also says what is wrong with a certificate.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, ClientConnection, RootCertStore, SignatureScheme, StreamOwned};
use ureq::tls::Certificate;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport, TransportAdapter,
};

/// Adds TLS to connections, with certificates of its own.
#[derive(Debug, Clone)]
pub(crate) struct OwnTls(Arc<ClientConfig>);

impl OwnTls {
    /// `None`: none of the certificates can be used.
    pub(crate) fn new(certificates: &[Certificate<'static>]) -> Option<OwnTls> {
        let own: Vec<_> = certificates.iter().map(|c| CertificateDer::from(c.der()).into_owned()).collect();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(own.iter().cloned());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let webpki = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone()).build().ok()?;
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
        let verifier = Arc::new(Verifier { own, webpki });
        let config = config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        Some(OwnTls(Arc::new(config)))
    }
}

/// Like webpki, but takes a certificate of an authority from a server if it is one of its own: only
/// who has made it can have its key.
#[derive(Debug)]
struct Verifier {
    own: Vec<CertificateDer<'static>>,
    webpki: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        // webpki checks the validity before, and the name after what it refuses here.
        match self.webpki.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(e)) if is_authority(&e) && self.own.contains(certificate) => {
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
        signed: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.webpki.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.webpki.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}

/// Whether a certificate was refused only because it is one of an authority.
fn is_authority(error: &CertificateError) -> bool {
    matches!(error, CertificateError::Other(other) if other.to_string() == "CaUsedAsEndEntity")
}

impl<In: Transport> Connector<In> for OwnTls {
    type Out = Either<In, Tls>;

    fn connect(&self, details: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<Self::Out>, ureq::Error> {
        let Some(transport) = chained else {
            return Ok(None);
        };
        if !details.needs_tls() || transport.is_tls() {
            return Ok(Some(Either::A(transport)));
        }
        let host = details.uri.host().unwrap_or_default();
        let host = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let name = ServerName::try_from(host.to_owned()).map_err(|_| ureq::Error::Tls("invalid name of a server"))?;
        let mut connection = ClientConnection::new(self.0.clone(), name)?;
        let mut socket = TransportAdapter::new(transport.boxed(), details.current_time.clone());
        socket.set_timeout(details.timeout);
        connection.complete_io(&mut socket)?;
        let sizes = (details.config.input_buffer_size(), details.config.output_buffer_size());
        let stream = StreamOwned::new(connection, socket);
        Ok(Some(Either::B(Tls { buffers: LazyBuffers::new(sizes.0, sizes.1), stream })))
    }
}

/// A connection with TLS.
pub(crate) struct Tls {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl Transport for Tls {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let output = self.buffers.output().get(..amount).unwrap_or_default();
        Ok(self.stream.write_all(output)?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

/// What is wrong with the certificate of a server, and what to do about it, if that is why there is
/// no response.
pub(crate) fn problem(error: &ureq::Error) -> Option<String> {
    let error = match error {
        ureq::Error::Rustls(error) => error,
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref::<rustls::Error>()?,
        _ => return None,
    };
    let rustls::Error::InvalidCertificate(error) = error else {
        return None;
    };
    let (why, how) = match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => ("it has expired", "renew it"),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            ("it is not valid yet", "check the clocks")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => (
            "it is not for this name",
            "make one with the name of the server as its `subjectAltName`, e.g. `DNS:localhost,IP:127.0.0.1`",
        ),
        CertificateError::UnknownIssuer => {
            ("its issuer is unknown", "set SSL_CERT_FILE to a PEM file with the certificate of the issuer")
        }
        error if is_authority(error) => (
            "it is that of an authority, and not in SSL_CERT_FILE",
            "set SSL_CERT_FILE to a PEM file with exactly this certificate, or make one with `basicConstraints=CA:FALSE`",
        ),
        other => return Some(format!("its certificate is not accepted: {other}")),
    };
    Some(format!("its certificate is not accepted: {why}; {how}"))
}
