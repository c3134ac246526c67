//! Probes over the kernel's loopback: TLS verified by a `ca` file, and the monitor as one task among others.

use std::sync::Arc;
use std::time::Duration;

use io::real::Real;
use model::active::ProbeKind;
use model::health::Health;
use model::outcome::FailureKind;
use monitor::{Context, Extensions, Monitor, Names};
use telemetry::journal::Journal;
use telemetry::metrics::Metrics;
use testkit::certificates::Authority;
use testkit::destination::Destination;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::LocalSet;
use tokio_rustls::TlsAcceptor;
use upstream::{Connector, SystemResolver, Tls};

use crate::world::{check, cluster, config, secs};

#[tokio::test]
async fn probes_over_tls_count_by_authority_and_name() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let acceptor = TlsAcceptor::from(authority.issue(&["localhost"]).server_config());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
            let _ = stream.shutdown().await;
        }
    });
    let plain = Destination::answering(200, "fine");
    let (named, unnamed) = (format!("https://localhost:{port}/"), format!("https://127.0.0.1:{port}/"));
    let over_http = |kind, id: &str| {
        let check =
            model::active::ActiveCheck { kind, interval: Duration::from_millis(200), timeout: secs(20), ..check() };
        let mut cluster =
            cluster(id, Some(check), &[("named", &named), ("unnamed", &unnamed), ("plain", &plain.url())]);
        cluster.tls.ca = Some(authority.write(folder.path()));
        cluster
    };
    let config = config(vec![over_http(ProbeKind::Http, "http"), over_http(ProbeKind::Tcp, "tcp")]);
    let context = Context {
        connector: Connector::new(Real::new(), SystemResolver::new(), Tls::new()),
        journal: Journal::new(Metrics::new()),
        metrics: Metrics::new(),
        workers: 1,
        seed: 7,
        names: Names::off(),
        spool: None,
        extensions: Extensions::default(),
    };
    let monitor = Monitor::new(context, Arc::new(config)).unwrap();
    let (board, handle) = (monitor.board(), monitor.handle().unwrap());
    let test = async {
        let task = tokio::task::spawn_local(monitor.run());
        let verdicts = || {
            let health = board.load().health.clone();
            let of = |at: usize| health.clusters.iter().map(move |cluster| cluster.destinations[at].clone());
            (0..3).flat_map(of).map(|one| (one.health.active, one.probe_failure)).collect::<Vec<_>>()
        };
        let (good, bad) = ((Health::Healthy, None), (Health::Unhealthy, Some(FailureKind::Tls)));
        let expected = [good, good, bad, bad, good, good];
        for _ in 0..3000 {
            if verdicts() == expected {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(verdicts(), expected);
        handle.shutdown().await.unwrap();
        task.await.unwrap();
        assert!(handle.drain().await.is_err(), "nobody answers any more");
    };
    LocalSet::new().run_until(test).await;
}
