//! A TCP proxy that fails on purpose, between a client and the database.
//!
//! ```text
//!   client ──► Proxy (one task per connection: read, obey the mode, write) ──► server
//!                ▲ mode: pass, delay, throttle, blackhole, half-close, reset, refuse
//!                ▲ trap: the COMMIT of one transaction, cut before the server hears of it or after it has answered
//! ```
//!
//! The mode is live: it holds for the connections that are open as well as for new ones, until the next is set. What a
//! blackhole has swallowed stays in the sockets, so that a mended line goes on where it stopped, as after a lost route;
//! [`Proxy::forget`] is the other case, a firewall that has forgotten its connections. Nothing outlives the [`Proxy`].

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

/// What the proxy does to every connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Forwards.
    #[default]
    Pass,
    /// Each request arrives so much later.
    Delay(Duration),
    /// Forwards so many bytes a second, in each direction.
    Throttle(u32),
    /// Accepts, and forwards nothing, in neither direction. Nobody is told.
    Blackhole,
    /// The server hears that the client has nothing more to say; what the client says is swallowed.
    HalfClose,
    /// Every connection is reset (RST), new ones at once.
    Reset,
    /// New connections are refused; open ones go on.
    Refuse,
}

/// Where a [trap](Proxy::trap) cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The COMMIT never reaches the server.
    BeforeCommit,
    /// The server has committed, and its answer never reaches the client.
    AfterCommit,
}

/// A running proxy. It and all its connections end when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: JoinHandle<()>,
}

/// Written by the [`Proxy`]'s owner; connections read it, spring the trap and keep the counts.
#[derive(Debug)]
struct Shared {
    orders: watch::Sender<Orders>,
    trap: Mutex<Option<(&'static str, Cut)>>,
    accepted: AtomicU64,
    open: AtomicUsize,
}

#[derive(Clone, Copy, Debug)]
struct Orders {
    target: SocketAddr,
    mode: Mode,
    /// Connections below this number are swallowed for ever.
    forgotten: u64,
    /// Connections below this number are cut, whoever has forgotten them.
    buried: u64,
    /// Connections below this number are cut.
    cut: u64,
}

impl Proxy {
    /// In front of `target`, on a port of its own of 127.0.0.1. The port lies below those that the kernel gives to
    /// clients, so nobody takes it while the proxy refuses.
    pub async fn start(target: SocketAddr) -> io::Result<Self> {
        let listener = loop {
            match bind(SocketAddr::from((Ipv4Addr::LOCALHOST, fastrand::u16(30_000..32_700)))).await {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                bound => break bound?,
            }
        };
        let address = listener.local_addr()?;
        let (orders, _) =
            watch::channel(Orders { target, mode: Mode::Pass, forgotten: 0, buried: 0, cut: 0 });
        let shared = Arc::new(Shared {
            orders,
            trap: Mutex::new(None),
            accepted: AtomicU64::new(0),
            open: AtomicUsize::new(0),
        });
        let acceptor = tokio::spawn(accept(listener, address, shared.clone()));
        Ok(Self { address, shared, acceptor })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same URL, by way of this proxy.
    pub fn url(&self, url: &str) -> String {
        let target = self.shared.orders.borrow().target;
        url.replace(&target.to_string(), &self.address.to_string())
    }

    /// From now on, for open connections and new ones.
    pub fn set(&self, mode: Mode) {
        self.shared.orders.send_modify(|orders| orders.mode = mode);
    }

    /// New connections go there.
    pub fn set_target(&self, target: SocketAddr) {
        self.shared.orders.send_modify(|orders| orders.target = target);
    }

    /// Resets every open connection, once. New ones pass.
    pub fn cut(&self) {
        self.shared.orders.send_modify(|orders| orders.cut = self.accepted());
    }

    /// Swallows every open connection for ever, whatever the mode. New ones pass.
    pub fn forget(&self) {
        self.shared.orders.send_modify(|orders| orders.forgotten = self.accepted());
    }

    /// Both ends notice what was forgotten so far, as keep-alive makes them in the end.
    pub fn bury(&self) {
        self.shared.orders.send_modify(|orders| orders.buried = orders.forgotten);
    }

    /// Once: cuts the transaction that says `word` at its COMMIT.
    pub fn trap(&self, word: &'static str, cut: Cut) {
        *self.shared.trap.lock().unwrap_or_else(PoisonError::into_inner) = Some((word, cut));
    }

    /// Whether the trap still waits.
    pub fn is_set(&self) -> bool {
        self.shared.trap.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Connections so far.
    pub fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// Connections now.
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Accepts until it is aborted, which ends the connections too.
async fn accept(listener: TcpListener, address: SocketAddr, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    let mut orders = shared.orders.subscribe();
    let mut listener = Some(listener);
    loop {
        let refuse = orders.borrow_and_update().mode == Mode::Refuse;
        if refuse {
            listener = None;
        } else if listener.is_none() {
            listener = bind(address).await.ok();
        }
        tokio::select! {
            client = async { listener.as_ref()?.accept().await.ok() }, if listener.is_some() => {
                if let Some((client, _)) = client {
                    let number = shared.accepted.fetch_add(1, Ordering::SeqCst);
                    connections.spawn(serve(client, number, shared.clone()));
                }
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            _ = orders.changed() => {}
        }
    }
}

async fn serve(client: TcpStream, number: u64, shared: Arc<Shared>) {
    shared.open.fetch_add(1, Ordering::SeqCst);
    let _ended =
        Line { client, server: None, number, orders: shared.orders.subscribe() }.forward(&shared).await;
    shared.open.fetch_sub(1, Ordering::SeqCst);
}

/// One client's connection and, once something may pass, the server's.
struct Line {
    client: TcpStream,
    server: Option<TcpStream>,
    number: u64,
    orders: watch::Receiver<Orders>,
}

impl Line {
    /// The mode of this line; `None` where it is to be cut.
    fn mode(&mut self) -> Option<Mode> {
        let orders = *self.orders.borrow_and_update();
        match orders.mode {
            _ if self.number < orders.buried => None,
            _ if self.number < orders.forgotten => Some(Mode::Blackhole),
            _ if self.number < orders.cut => None,
            Mode::Reset => None,
            mode => Some(mode),
        }
    }

    async fn forward(mut self, shared: &Shared) -> io::Result<()> {
        let (mut asked, mut told) = (vec![0; 16 << 10], vec![0; 16 << 10]);
        // The trap's word was heard in this connection's open transaction; the answer to its COMMIT is to be swallowed.
        let (mut armed, mut swallow) = (false, false);
        let (mut client_open, mut half_closed) = (true, false);
        while let Some(mode) = self.mode() {
            if mode == Mode::Blackhole {
                self.orders.changed().await.map_err(io::Error::other)?;
                continue;
            }
            let server = match &mut self.server {
                Some(server) => server,
                unconnected => {
                    let target = self.orders.borrow().target;
                    unconnected.insert(TcpStream::connect(target).await?)
                }
            };
            if mode == Mode::HalfClose && !half_closed {
                server.shutdown().await?;
                half_closed = true;
            }
            tokio::select! {
                n = self.client.read(&mut asked), if client_open => {
                    let request = &asked[..n?];
                    if request.is_empty() {
                        client_open = false;
                        if !half_closed {
                            server.shutdown().await?;
                        }
                        continue;
                    }
                    match sprung(shared, request, &mut armed) {
                        Some(Cut::BeforeCommit) => break,
                        Some(Cut::AfterCommit) => swallow = true,
                        None => {}
                    }
                    pause(mode, request.len()).await;
                    if !half_closed {
                        server.write_all(request).await?;
                    }
                }
                n = server.read(&mut told) => {
                    let answer = &told[..n?];
                    if answer.is_empty() {
                        return self.client.shutdown().await;
                    }
                    if swallow {
                        break;
                    }
                    if matches!(mode, Mode::Throttle(_)) {
                        pause(mode, answer.len()).await;
                    }
                    self.client.write_all(answer).await?;
                }
                changed = self.orders.changed() => changed.map_err(io::Error::other)?,
            }
        }
        self.client.set_zero_linger()?;
        self.server.map_or(Ok(()), |server| server.set_zero_linger())
    }
}

/// Whether this request springs the trap: the COMMIT of a transaction that said its word.
fn sprung(shared: &Shared, request: &[u8], armed: &mut bool) -> Option<Cut> {
    let mut trap = shared.trap.lock().unwrap_or_else(PoisonError::into_inner);
    let (word, cut) = (*trap)?;
    let says = |word: &str| request.windows(word.len()).any(|bytes| bytes == word.as_bytes());
    if *armed && says("COMMIT") {
        *trap = None;
        return Some(cut);
    }
    *armed = says(word) || (*armed && !says("ROLLBACK"));
    None
}

async fn pause(mode: Mode, bytes: usize) {
    match mode {
        Mode::Delay(delay) => sleep(delay).await,
        Mode::Throttle(rate) => {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            sleep(Duration::from_secs_f64(f64::from(bytes) / f64::from(rate.max(1)))).await;
        }
        _ => {}
    }
}
