//! A real nginx beside us, for tests that hold one proxy against the other.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use crate::process::{Process, free_address, poll};

/// A running nginx in front of one destination; killed when dropped.
pub struct Nginx {
    _process: Process,
    _folder: tempfile::TempDir,
    /// Where it serves.
    pub addr: SocketAddr,
}

/// What the machine lacks for it; `None`: nothing.
pub fn lacking() -> Option<&'static str> {
    let found = Command::new("nginx").arg("-v").env("PATH", path()).output();
    found.is_err().then_some("nginx (package nginx-light)")
}

impl Nginx {
    /// Starts it, one worker process, no connection to the destination kept, nothing tried twice.
    pub fn start(destination: SocketAddr) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let addr = free_address();
        let config = format!(
            "daemon off; master_process off; worker_processes 1; pid nginx.pid; error_log stderr crit;\n\
             events {{ worker_connections 512; }}\n\
             http {{ access_log off; proxy_next_upstream off; proxy_http_version 1.1; proxy_request_buffering off;\n\
             client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;\n\
             scgi_temp_path scgi;\n\
             upstream app {{ server {destination} max_fails=0; }}\n\
             server {{ listen {addr}; location / {{ proxy_pass http://app; proxy_set_header Connection \"\";\n\
             proxy_set_header Host $http_host; }} }} }}\n"
        );
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, config).expect("the folder is ours");
        let mut command = Command::new("nginx");
        command.arg("-p").arg(folder.path()).arg("-c").arg(&file).env("PATH", path());
        let process = Process::start(command, folder.path().join("output.log"));
        let is_up = poll(Duration::from_secs(10), || TcpStream::connect(addr).is_ok());
        assert!(is_up, "nginx does not listen: {}", process.output());
        Self { _process: process, _folder: folder, addr }
    }
}

/// Administrators' programs are not on everybody's path.
fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}
