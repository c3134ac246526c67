//! BIRD 2 with a control socket of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::netns::Namespace;
use crate::process::{Process, poll};

/// A running BIRD.
pub struct Bird {
    /// The process.
    pub process: Process,
    socket: PathBuf,
    log: PathBuf,
}

impl Bird {
    /// Starts one with this configuration; `name` names its files in `folder`.
    pub fn start(namespace: &Namespace, folder: &Path, name: &str, config: &str) -> Self {
        let file = |suffix: &str| folder.join(format!("{name}.{suffix}"));
        let (log, socket) = (file("log"), file("ctl"));
        fs::write(file("conf"), format!("log \"{}\" all;\n{config}", log.display())).expect("the folder is ours");
        let mut command = namespace.command("bird");
        command.arg("-f").arg("-c").arg(file("conf")).arg("-s").arg(&socket).arg("-P").arg(file("pid"));
        Self { process: Process::start(command, file("out")), socket, log }
    }

    /// Waits until a BGP session is established.
    pub fn wait_established(&self, protocol: &str) {
        let is_up = || self.ask(&["show", "protocols", protocol]).contains("Established");
        assert!(
            poll(Duration::from_secs(20), is_up),
            "{protocol} is not established:\n{}\n{}",
            fs::read_to_string(&self.log).unwrap_or_default(),
            self.process.output()
        );
    }

    /// What `birdc` prints.
    pub fn ask(&self, words: &[&str]) -> String {
        let output = Command::new("birdc").arg("-s").arg(&self.socket).args(words).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    }
}

/// The configuration of a site: exports host routes of `rhi0`, and nothing else.
pub fn site_config(asn: u32, router_id: &str, neighbor: &str, own_v6: &str) -> String {
    format!(
        r#"router id {router_id};
protocol device {{ scan time 2; }}
protocol direct rhi {{ ipv4; ipv6; interface "rhi0"; }}
define VIP4 = [ 10.0.0.0/24{{32,32}} ];
define VIP6 = [ fd00:0:0:64::/64{{128,128}} ];
filter vip_only {{
  if (source = RTS_DEVICE) && (proto = "rhi") && ((net.type = NET_IP4 && net ~ VIP4) || (net.type = NET_IP6 && net ~ VIP6)) then accept;
  reject;
}}
protocol bgp edge {{
  local as {asn}; neighbor {neighbor} as 65000; hold time 9; keepalive time 3;
  connect delay time 1; connect retry time 1; error wait time 1, 2;
  ipv4 {{ import none; export filter vip_only; next hop self; }};
  ipv6 {{ import none; export filter vip_only; next hop address {own_v6}; }};
}}
"#
    )
}

/// The configuration of the router: prefers site 1, knows site 2, exports the best path to its kernel.
pub fn router_config() -> String {
    r"router id 198.51.100.1;
protocol device { scan time 2; }
protocol kernel { ipv4 { import none; export all; }; scan time 20; }
protocol kernel { ipv6 { import none; export all; }; scan time 20; }
filter from_site { if (bgp_path.first = 65001) then bgp_local_pref = 200; accept; }
template bgp site {
  local as 65000; hold time 9; keepalive time 3; connect delay time 1; connect retry time 1; error wait time 1, 2;
  ipv4 { import filter from_site; export none; }; ipv6 { import filter from_site; export none; };
}
protocol bgp site1 from site { neighbor 198.51.100.2 as 65001; }
protocol bgp site2 from site { neighbor 198.51.100.6 as 65002; }
"
    .to_owned()
}
