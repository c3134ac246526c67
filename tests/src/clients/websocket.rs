//! A WebSocket server of a library that others wrote: it sends back what comes.

use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;

/// A message upon which the server resets its connection.
pub const RESET: &str = "reset";

/// A running server; its threads end with it.
pub struct Echo {
    /// Where it listens.
    pub addr: SocketAddr,
    _runtime: tokio::runtime::Runtime,
}

impl Echo {
    /// Listens on a free port.
    pub fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let addr = listener.local_addr().expect("a bound listener has an address");
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
        Self { addr, _runtime: runtime }
    }

    /// Lines of a configuration: a route for `/socket` to it, in a cluster `socket`.
    pub fn config(&self) -> (String, String) {
        let route = "  socket: {match: {path: /socket}, cluster: socket}\n".to_owned();
        (route, format!("  socket: {{destinations: {{echo: {{address: \"http://{}/\"}}}}}}\n", self.addr))
    }
}

async fn serve(stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut socket = tokio_tungstenite::accept_async(stream).await.ok()?;
    while let Some(message) = socket.next().await {
        match message.ok()? {
            Message::Text(text) if text.as_str() == RESET => {
                socket2::SockRef::from(socket.get_ref()).set_linger(Some(std::time::Duration::ZERO)).ok()?;
                return None;
            }
            message @ (Message::Text(_) | Message::Binary(_)) => socket.send(message).await.ok()?,
            // The library answers these by itself.
            Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => {}
        }
    }
    Some(())
}
