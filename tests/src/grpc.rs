//! A gRPC server of tonic whose answers a test chooses: it serves gRPC's own health service, which has a call of one answer
//! (`Check`) and one of many (`Watch`).

use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt, stream};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tonic::{Code, Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

/// What the server says to every `Check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// A message with this verdict.
    Verdict(ServingStatus),
    /// No message but this status, with a message and a field of its own in the trailers.
    Status(Code),
    /// Nothing.
    Nothing,
}

/// A `Watch` of this service sends messages on and on, the others send [`MESSAGES`] and end with ABORTED.
pub const ENDLESS: &str = "endless";
/// The field that each server names itself in.
pub const SERVED_BY: &str = "x-served-by";
/// Messages of a `Watch`.
pub const MESSAGES: usize = 2_000;

/// A running server. Dropped or killed, its connections break off.
pub struct Tonic {
    /// Where it listens, without TLS.
    pub address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Tonic {
    /// Starts one.
    pub fn start(name: &'static str, says: Says) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        runtime.spawn(async move {
            let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
            let service = HealthServer::new(Service { name, says });
            Server::builder().add_service(service).serve_with_incoming(incoming).await
        });
        Self { address, runtime: Some(runtime) }
    }

    /// Ends it in the middle of whatever it does.
    pub fn kill(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Tonic {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A client of the health service at an address without TLS.
pub async fn client(to: SocketAddr) -> HealthClient<Channel> {
    let endpoint = Channel::from_shared(format!("http://{to}")).expect("an address makes a URL");
    HealthClient::new(endpoint.connect().await.expect("it listens"))
}

struct Service {
    name: &'static str,
    says: Says,
}

type Messages = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

#[tonic::async_trait]
impl Health for Service {
    async fn check(&self, _: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        match self.says {
            Says::Verdict(verdict) => {
                let mut response = Response::new(HealthCheckResponse { status: verdict.into() });
                response.metadata_mut().insert(SERVED_BY, self.name.parse().expect("a name is visible ASCII"));
                Ok(response)
            }
            Says::Status(code) => {
                let mut status = Status::new(code, "it is 50 % so, says \u{e4}");
                status.metadata_mut().insert(SERVED_BY, self.name.parse().expect("a name is visible ASCII"));
                Err(status)
            }
            Says::Nothing => std::future::pending().await,
        }
    }

    type WatchStream = Messages;

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<Messages>, Status> {
        let message = |number: usize| Ok(HealthCheckResponse { status: i32::try_from(number % 3).unwrap_or(0) });
        let messages: Messages = if request.get_ref().service == ENDLESS {
            let paced = move |number: usize| async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                message(number)
            };
            Box::pin(stream::iter(0..).then(paced))
        } else {
            Box::pin(
                stream::iter((0..MESSAGES).map(message)).chain(stream::once(async { Err(Status::aborted("enough")) })),
            )
        };
        let mut response = Response::new(messages);
        response.metadata_mut().insert(SERVED_BY, self.name.parse().expect("a name is visible ASCII"));
        Ok(response)
    }
}
