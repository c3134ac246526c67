//! Sockets that a service manager opened or kept: connections wait in them while no process is there.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use end_to_end::binaries;
use end_to_end::probed::Probed;
use end_to_end::process::free_address;
use io::real::pass;

/// A `lazaret` that was started as a service manager does it; killed when dropped.
struct Service(Child);

impl Service {
    /// With two descriptors, 3 and 4.
    fn start(folder: &Path, first: OwnedFd, second: OwnedFd) -> Self {
        let script = "exec 3<&0 4<&1 </dev/null >/dev/null; export LISTEN_FDS=2 LISTEN_PID=$$; exec \"$0\" \"$@\"";
        let log = std::fs::OpenOptions::new().create(true).append(true).open(folder.join("log")).expect("it is ours");
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .arg(binaries::path("lazaret"))
            .arg("run")
            .arg("-c")
            .arg(folder.join("lazaret.yaml"));
        command.env("NOTIFY_SOCKET", folder.join("notify")).stdin(Stdio::from(first)).stdout(Stdio::from(second));
        Self(command.stderr(log).spawn().expect("there is a shell"))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A client whose request is sent before anybody accepts it.
fn client(to: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(to).expect("the kernel takes it");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket takes a timeout");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n").expect("the kernel takes it");
    stream
}

fn answer(mut client: TcpStream, folder: &Path) {
    let mut text = String::new();
    let read = client.read_to_string(&mut text);
    let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    assert!(read.is_ok() && text.starts_with("HTTP/1.1 200"), "{read:?} {text}\n{log}");
}

/// The next descriptor that is given to be kept, with its name.
fn kept(notify: &UnixDatagram) -> (String, OwnedFd) {
    for _ in 0..20 {
        let mut message = [0; 4096];
        let (length, descriptor) = pass::receive_with(notify, &mut message).expect("a message comes");
        let text = String::from_utf8_lossy(&message[..length]).into_owned();
        if let (Some(name), Some(descriptor)) = (text.strip_prefix("FDSTORE=1\nFDNAME="), descriptor) {
            return (name.to_owned(), descriptor);
        }
    }
    panic!("no descriptor is given to be kept");
}

#[test]
fn connections_wait_for_the_first_process_and_for_the_one_after_a_crash() {
    let destination = Probed::start("a");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (folder, control) = (folder.path(), free_address());
    let web = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let extra = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let (address, unwanted) = (web.local_addr().expect("it is bound"), extra.local_addr().expect("it is bound"));
    let fresh = free_address();
    let text = format!(
        "version: 1\nworkers: 2\ncontrol: {{address: \"{control}\", socket: off}}\nlisteners: {{web: {{address: \
         \"{address}\"}}, fresh: {{address: \"{fresh}\"}}}}\nroutes: {{all: {{match: {{path: \"/{{**rest}}\"}}, cluster: \
         app}}}}\nclusters: {{app: {{destinations: {{a: {{address: \"{}\"}}}}}}}}\n",
        destination.url()
    );
    std::fs::write(folder.join("lazaret.yaml"), text).expect("the folder is ours");
    let notify = UnixDatagram::bind(folder.join("notify")).expect("the folder is ours");
    notify.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket takes a timeout");

    let early = client(address);
    let service = Service::start(folder, web.into(), extra.into());
    answer(early, folder);
    // One that is not passed is bound: a socket per worker. The one that is passed is all there is of it.
    let mut store = vec![kept(&notify), kept(&notify), kept(&notify)];
    let name = format!("listener-{address}").replace(':', "_");
    assert_eq!(store.iter().filter(|(kept, _)| *kept == name).count(), 1, "{store:?}");
    answer(client(fresh), folder);
    let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    assert!(log.contains(&unwanted.to_string()) && log.contains("no listener is configured"), "{log}");
    assert!(TcpStream::connect(unwanted).is_err(), "it is closed");

    drop(service);
    let waiting = client(address);
    let place = store.iter().position(|(kept, _)| *kept == name).expect("it is there");
    let (_, web) = store.remove(place);
    let (_, other) = store.remove(0);
    store.clear();
    let _service = Service::start(folder, web, other);
    answer(waiting, folder);
}
