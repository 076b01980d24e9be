//! Connections that a handler can break in the ways that HTTP has no words for.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

const OPEN: u8 = 0;
const CLOSE: u8 = 1;
const RESET: u8 = 2;

/// The handler's hold on its connection. Whatever the handler answers after breaking it is never sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Tap(Arc<AtomicU8>);

impl Tap {
    /// Closes the connection without an answer.
    pub(super) fn close(&self) {
        self.0.store(CLOSE, Ordering::Release);
    }

    /// Resets the connection: the caller sees ECONNRESET.
    pub(super) fn reset(&self) {
        self.0.store(RESET, Ordering::Release);
    }
}

impl Connected<IncomingStream<'_, Listener>> for Tap {
    fn connect_info(stream: IncomingStream<'_, Listener>) -> Self {
        stream.io().tap.clone()
    }
}

pub(super) struct Listener(pub TcpListener);

impl axum::serve::Listener for Listener {
    type Io = Wire;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Wire, SocketAddr) {
        let (stream, addr) = axum::serve::Listener::accept(&mut self.0).await;
        // Drops of a slow answer go out as they fall; without it they are only later.
        let _ = stream.set_nodelay(true);
        (Wire { stream, tap: Tap::default() }, addr)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

pub(super) struct Wire {
    stream: TcpStream,
    tap: Tap,
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.tap.0.load(Ordering::Acquire) == OPEN {
            Pin::new(&mut self.stream).poll_write(cx, buf)
        } else {
            // The server gives the connection up and drops it.
            Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.tap.0.load(Ordering::Acquire) == RESET {
            // With no linger, closing resets.
            let _ = self.stream.set_zero_linger();
        }
    }
}
