//! Certificates of all kinds, right and wrong, and TLS in front of a downstream that has none.
//!
//! The authority is made by `openssl`, as a company's private one would be.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// A private certificate authority. Its files go when it is dropped.
pub struct Authority(TempDir);

/// A server's certificate and key, as PEM files in the authority's folder.
#[derive(Clone, Debug)]
pub struct Signed {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// From when until when a certificate holds, as openssl writes it.
pub type Validity = [&'static str; 2];
/// For as long as anybody will run this.
pub const VALID: Validity = ["20200101000000Z", "20990101000000Z"];
/// Over for years.
pub const EXPIRED: Validity = ["20200101000000Z", "20200201000000Z"];

const CONFIG: &str = "\
[ca]\ndefault_ca = ours\n\
[ours]\ndatabase = index\nrand_serial = yes\nnew_certs_dir = .\ndefault_md = sha256\npolicy = any\n\
copy_extensions = copy\nunique_subject = no\n\
[any]\ncommonName = supplied\n";
const NEW_KEY: [&str; 6] = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Authority {
    /// A new one, which nobody trusts yet.
    pub fn new() -> Self {
        let authority = Self(tempfile::tempdir().unwrap());
        std::fs::write(authority.path("config"), CONFIG).unwrap();
        std::fs::write(authority.path("index"), "").unwrap();
        let subject = ["-x509", "-days", "2", "-subj", "/CN=permitq test authority", "-addext"];
        let files = ["basicConstraints=critical,CA:TRUE", "-keyout", "ca.key", "-out", "ca.crt"];
        authority.openssl(&[&NEW_KEY[..], &subject, &files].concat());
        authority
    }

    /// Its own certificate: whoever trusts this file trusts what it signs.
    pub fn file(&self) -> PathBuf {
        self.path("ca.crt")
    }

    /// A certificate for these names, such as `IP:127.0.0.1` or `DNS:queue.example`.
    pub fn sign(&self, name: &str, names: &str, [from, until]: Validity) -> Signed {
        let (request, key, certificate) =
            (format!("{name}.csr"), format!("{name}.key"), format!("{name}.crt"));
        let names = format!("subjectAltName={names}");
        let subject = ["-subj", "/CN=permitq test", "-addext", &names, "-keyout", &key, "-out", &request];
        self.openssl(&[&NEW_KEY[..], &subject].concat());
        let files = ["-cert", "ca.crt", "-keyfile", "ca.key", "-in", &request, "-out", &certificate];
        let dates = ["-startdate", from, "-enddate", until];
        self.openssl(&[&["ca", "-batch", "-notext", "-config", "config"][..], &files, &dates].concat());
        Signed { certificate: self.path(&certificate), key: self.path(&key) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn openssl(&self, args: &[&str]) {
        let mut openssl = Command::new("openssl");
        openssl.args(args).current_dir(self.0.path()).stdin(Stdio::null());
        let output = openssl.output().expect("openssl; to install it: tests/install-databases.sh");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Takes TLS off every connection and passes it on. It and all its connections end when it is dropped.
pub struct Front {
    address: SocketAddr,
    acceptor: JoinHandle<()>,
}

impl Front {
    /// In front of `target`, on a port of its own, with this certificate.
    pub async fn start(target: SocketAddr, signed: &Signed) -> io::Result<Self> {
        let acceptor = TlsAcceptor::from(Arc::new(config(&signed.certificate, &signed.key)));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let acceptor = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                connections.spawn(async move {
                    // Who does not trust us hangs up here, and that is the point.
                    let Ok(mut client) = acceptor.accept(stream).await else { return };
                    let Ok(mut server) = TcpStream::connect(target).await else { return };
                    let _ended = copy_bidirectional(&mut client, &mut server).await;
                    let _closed = client.shutdown().await;
                });
            }
        });
        Ok(Self { address, acceptor })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

fn config(certificate: &Path, key: &Path) -> ServerConfig {
    let chain = CertificateDer::pem_file_iter(certificate).unwrap().map(Result::unwrap).collect();
    ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key).unwrap())
        .unwrap()
}
